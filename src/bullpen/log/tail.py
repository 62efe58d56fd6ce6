"""The newest events of a log in memory, as they go over the wire."""

from collections import deque
from collections.abc import Sequence
from itertools import islice

MAX_EVENTS = 4096
MAX_BYTES = 4 * 1024 * 1024


class EventTail:
    """A run of events without gaps that ends at the newest; the oldest leave first."""

    def __init__(self, head: int) -> None:
        self.head = head
        self._wire: deque[bytes] = deque()
        self._size = 0

    @property
    def start(self) -> int:
        """The seq after which everything is here."""
        return self.head - len(self._wire)

    def extend(self, wire: Sequence[bytes]) -> None:
        self._wire.extend(wire)
        self._size += sum(map(len, wire))
        self.head += len(wire)
        while len(self._wire) > MAX_EVENTS or self._size > MAX_BYTES:
            self._size -= len(self._wire.popleft())

    def skip_to(self, head: int) -> None:
        """Forgets everything: nobody is there to read it."""
        self.head = head
        self._wire.clear()
        self._size = 0

    def between(self, after: int, until: int, most_bytes: int = MAX_BYTES) -> list[bytes]:
        """The events with after < seq <= until, up to `most_bytes`; `after` must not lie before `start`."""
        newest = islice(reversed(self._wire), self.head - until, self.head - after)  # near the end, mostly
        found, size = [], 0
        for wire in reversed([*newest]):
            found.append(wire)
            size += len(wire)
            if size > most_bytes:
                break
        return found
