"""A terminal's recording without secrets: every byte at its place, some of them covered."""

from pathlib import Path

from ..wire.redaction import Redaction
from .recording import Recording

MARGIN = 16 << 10  # a secret that lies across the end of a piece is seen whole up to this length


class RedactedRecording(Recording):
    """Reads a little more on both sides of what is asked for, and covers what it finds."""

    def __init__(self, path: Path, redaction: Redaction) -> None:
        super().__init__(path)
        self._redaction = redaction

    def read(self, offset: int, limit: int) -> bytes:
        begin = max(self.start, offset - MARGIN)
        data = b""
        while len(data) < offset - begin + limit + MARGIN:
            piece = super().read(begin + len(data), offset - begin + limit + MARGIN - len(data))
            if not piece:
                break
            data += piece
        return self._redaction.data(data)[offset - begin : offset - begin + limit]
