"""Keep typed input in numbered batches, to send it again until the keeper acknowledges it.

The keeper remembers the last number of every writer: it ignores a repeated batch and refuses a gap. So each
batch keeps its number and its bytes over all connections.
"""

import base64
from collections import deque
from collections.abc import Iterator
from typing import Any, NamedTuple

MAX_BATCH_BYTES = 32 * 1024


class InputBatch(NamedTuple):
    """Input bytes with the number `n` of their batch."""

    n: int
    data: bytes

    def message(self) -> dict[str, Any]:
        """Return the batch as a message of the terminal's WebSocket."""
        try:
            return {"type": "input", "n": self.n, "data": self.data.decode()}
        except UnicodeDecodeError:
            return {"type": "input", "n": self.n, "base64": base64.b64encode(self.data).decode()}


class UnacknowledgedInput:
    """The unacknowledged batches of one writer, oldest first; `size` is their bytes."""

    def __init__(self) -> None:
        self._waiting: deque[InputBatch] = deque()
        self._last = 0
        self.size = 0

    def add(self, data: bytes) -> int:
        """Append data in one or more batches, and return the number of the last."""
        for start in range(0, len(data), MAX_BATCH_BYTES):
            self._last += 1
            self._waiting.append(InputBatch(self._last, data[start : start + MAX_BATCH_BYTES]))
        self.size += len(data)
        return self._last

    def after(self, n: int) -> Iterator[InputBatch]:
        """Yield the batches with a number above n; batches may be added or acknowledged meanwhile."""
        while batch := next((batch for batch in self._waiting if batch.n > n), None):
            n = batch.n
            yield batch

    def acknowledge(self, n: int) -> None:
        """Remove the batches up to number n."""
        while self._waiting and self._waiting[0].n <= n:
            self.size -= len(self._waiting.popleft().data)

    def __bool__(self) -> bool:
        return bool(self._waiting)
