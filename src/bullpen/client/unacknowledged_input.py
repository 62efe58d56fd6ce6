"""What was typed and not yet taken: numbered batches that are sent again until the server has them.

The keeper remembers the last number of every writer: a repeat is ignored, a gap refused. So each batch
keeps its number and its bytes over every connection.
"""

import base64
from collections import deque
from collections.abc import Iterator
from typing import Any, NamedTuple

LARGEST_BATCH = 32 * 1024


class InputBatch(NamedTuple):
    n: int
    data: bytes

    def message(self) -> dict[str, Any]:
        try:
            return {"type": "input", "n": self.n, "data": self.data.decode()}
        except UnicodeDecodeError:
            return {"type": "input", "n": self.n, "base64": base64.b64encode(self.data).decode()}


class UnacknowledgedInput:
    """The batches of one writer, oldest first."""

    def __init__(self) -> None:
        self._waiting: deque[InputBatch] = deque()
        self._last = 0
        self.size = 0

    def add(self, data: bytes) -> int:
        """Numbers data; returns the number of its last batch."""
        for start in range(0, len(data), LARGEST_BATCH):
            self._last += 1
            self._waiting.append(InputBatch(self._last, data[start : start + LARGEST_BATCH]))
        self.size += len(data)
        return self._last

    def after(self, n: int) -> Iterator[InputBatch]:
        """Those waiting above n; safe against batches that come and go meanwhile."""
        while batch := next((batch for batch in self._waiting if batch.n > n), None):
            n = batch.n
            yield batch

    def taken(self, n: int) -> None:
        """The keeper has everything up to n."""
        while self._waiting and self._waiting[0].n <= n:
            self.size -= len(self._waiting.popleft().data)

    def __bool__(self) -> bool:
        return bool(self._waiting)
