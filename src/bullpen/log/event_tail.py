"""The newest events of a log in memory, as JSON, for its followers."""

from collections import deque
from collections.abc import Sequence
from itertools import islice

MAX_EVENTS = 4096
MAX_BYTES = 4 * 1024 * 1024


class EventTail:
    """The newest events without gaps, limited in number and size; the oldest are dropped first."""

    def __init__(self, head: int) -> None:
        self.head = head
        self._wire: deque[bytes] = deque()
        self._size = 0

    @property
    def start(self) -> int:
        """The number after which all events of the log are in memory."""
        return self.head - len(self._wire)

    def extend(self, wire: Sequence[bytes]) -> None:
        """Append events and drop the oldest beyond the limits."""
        self._wire.extend(wire)
        self._size += sum(map(len, wire))
        self.head += len(wire)
        while len(self._wire) > MAX_EVENTS or self._size > MAX_BYTES:
            self._size -= len(self._wire.popleft())

    def skip_to(self, head: int) -> None:
        """Drop all events, because no follower reads them."""
        self.head = head
        self._wire.clear()
        self._size = 0

    def between(self, after: int, until: int, max_bytes: int = MAX_BYTES) -> list[bytes]:
        """Return events with after < seq <= until, up to about `max_bytes`.

        `after` must be at least `start`.
        """
        newest = islice(reversed(self._wire), self.head - until, self.head - after)  # near the end, mostly
        found, size = [], 0
        for wire in reversed([*newest]):
            found.append(wire)
            size += len(wire)
            if size > max_bytes:
                break
        return found
