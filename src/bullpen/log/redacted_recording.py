"""A terminal's recording with secrets covered by asterisks; all offsets stay the same."""

from pathlib import Path

from ..wire.redaction import Redaction
from .recording import Recording

MARGIN_BYTES = 16 << 10  # secrets up to this size are found across the end of a read


class RedactedRecording(Recording):
    """A recording that covers secrets in what is read.

    It reads a margin on both sides to find secrets across a boundary.
    """

    def __init__(self, path: Path, redaction: Redaction) -> None:
        super().__init__(path)
        self._redaction = redaction

    def read(self, offset: int, limit: int) -> bytes:
        """Return up to `limit` bytes of output from `offset` on, with secrets covered."""
        begin = max(self.start, offset - MARGIN_BYTES)
        data = b""
        while len(data) < offset - begin + limit + MARGIN_BYTES:
            piece = super().read(begin + len(data), offset - begin + limit + MARGIN_BYTES - len(data))
            if not piece:
                break
            data += piece
        return self._redaction.redact_bytes(data)[offset - begin : offset - begin + limit]
