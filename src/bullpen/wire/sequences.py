"""Find control sequences in terminal output that arrives in pieces of any size."""

import re

_MAX_HELD_BYTES = 1024 * 1024

_CSI = rb"(?:\x1b\[|\xc2\x9b)"
_OSC = rb"(?:\x1b\]|\xc2\x9d)"
_STRING = rb"(?:\x1b[P_^X]|\xc2[\x90\x98\x9e\x9f])"
_END = rb"(?:\x1b\\|\xc2\x9c)"
_CONTROL = rb"\x00-\x17\x19\x1c-\x1f"  # terminals execute these even inside a sequence
_TOKEN = (
    rb"(?:%b(?P<csi>[%b\x20-\x3f]*[\x40-\x7e])" % (_CSI, _CONTROL)
    + rb"|%b(?P<osc>[^\x07\x1b\x18\x1a\xc2]*(?:\xc2[^\x9c][^\x07\x1b\x18\x1a\xc2]*)*)(?:\x07|%b)"
    % (_OSC, _END)
    + rb"|(?P<intro>%b)(?P<string>[^\x1b\x18\x1a\xc2]*(?:\xc2[^\x9c][^\x1b\x18\x1a\xc2]*)*)%b"
    % (_STRING, _END)
    + rb"|(?P<partial>%b[%b\x20-\x3f]*\Z" % (_CSI, _CONTROL)
    + rb"|(?:%b[^\x07\x1b\x18\x1a]*|%b[^\x1b\x18\x1a]*)\x1b?\Z|\x1b[\x20-\x2f]*\Z|\xc2\Z)" % (_OSC, _STRING)
    + rb"|(?P<single>\x1b[\x20-\x2f]*[\x30-\x7e]|\x05))"
)
_START = rb"(?=[\x05\x1b\xc2])"
_DRAWING = rb"\x1b\[(?:\d{0,4}[;:])*\d{0,4}[mHJKABCD]"
EVERY_SEQUENCE = re.compile(_START + _TOKEN, re.DOTALL)
# Skips the most frequent sequences, which is far faster.
ALL_BUT_DRAWING = re.compile(rb"%b(?!%b)%b" % (_START, _DRAWING, _TOKEN), re.DOTALL)
_STARTS = (b"\x1b", b"\xc2", b"\x05")


class Sequences:
    """Replaces control sequences in terminal output; an incomplete sequence waits for its next piece.

    A subclass overrides `replace_sequence`. The match has one of the groups csi, osc, string (with intro) and
    single.
    """

    pattern = EVERY_SEQUENCE

    def __init__(self) -> None:
        self._held = b""

    def feed(self, data: bytes) -> bytes:
        """Return terminal output with its complete control sequences replaced."""
        if self._held:
            data, self._held = self._held + data, b""
        if not any(start in data for start in _STARTS):
            return data
        return self.pattern.sub(self._take, data)

    def discard_partial(self) -> None:
        """Drop an incomplete control sequence that waits for its next piece."""
        self._held = b""

    def replace_sequence(self, token: re.Match[bytes]) -> bytes:
        """Subclasses return the bytes that take the place of a control sequence."""
        raise NotImplementedError

    def _take(self, token: re.Match[bytes]) -> bytes:
        """Replace one match; an incomplete sequence is held unless it is too long."""
        if token.lastgroup != "partial":
            return self.replace_sequence(token)
        piece = token.group()
        if len(piece) > _MAX_HELD_BYTES:
            return piece
        self._held = piece
        return b""
