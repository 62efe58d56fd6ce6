"""The last lines of a stream, without keeping the stream."""

from collections import deque


class LastLines:
    """Holds back so many lines; without a number, nothing."""

    def __init__(self, lines: int | None) -> None:
        self._everything = lines is None
        self._lines: deque[bytes] = deque(maxlen=lines)
        self._unfinished = b""

    def feed(self, data: bytes) -> bytes:
        """What can be passed on at once."""
        if self._everything:
            return data
        *lines, self._unfinished = (self._unfinished + data).split(b"\n")
        self._lines.extend(line + b"\n" for line in lines)
        return b""

    def rest(self) -> bytes:
        """What was held back."""
        if self._unfinished:
            self._lines.append(self._unfinished)
        return b"".join(self._lines)
