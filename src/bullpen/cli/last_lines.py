"""Collect the last lines of a stream."""

from collections import deque


class LastLines:
    """A filter that passes only the last `lines` lines of a stream; with None it passes everything."""

    def __init__(self, lines: int | None) -> None:
        self._everything = lines is None
        self._lines: deque[bytes] = deque(maxlen=lines)
        self._unfinished = b""

    def feed(self, data: bytes) -> bytes:
        """Add data, and return what can be written already."""
        if self._everything:
            return data
        *lines, self._unfinished = (self._unfinished + data).split(b"\n")
        self._lines.extend(line + b"\n" for line in lines)
        return b""

    def finish(self) -> bytes:
        """Return the last lines at the end of the stream."""
        if self._unfinished:
            self._lines.append(self._unfinished)
        return b"".join(self._lines)
