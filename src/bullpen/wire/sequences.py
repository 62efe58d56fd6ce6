"""Finds the control sequences in a program's output, however it is cut into pieces."""

import re

_MOST_HELD = 1024 * 1024

_CSI = rb"(?:\x1b\[|\xc2\x9b)"
_OSC = rb"(?:\x1b\]|\xc2\x9d)"
_STRING = rb"(?:\x1b[P_^X]|\xc2[\x90\x98\x9e\x9f])"
_END = rb"(?:\x1b\\|\xc2\x9c)"
_CONTROL = rb"\x00-\x17\x19\x1c-\x1f"  # terminals obey these even inside a sequence
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
_MERELY_DRAWING = rb"\x1b\[(?:\d{0,4}[;:])*\d{0,4}[mHJKABCD]"
EVERY = re.compile(_START + _TOKEN, re.DOTALL)
ALL_BUT_DRAWING = re.compile(rb"%b(?!%b)%b" % (_START, _MERELY_DRAWING, _TOKEN), re.DOTALL)  # far faster
_STARTS = (b"\x1b", b"\xc2", b"\x05")


class Sequences:
    """Takes output in pieces of any size; half a sequence waits for its other half.

    A subclass says what becomes of a sequence: one of the groups csi, osc, string (with intro) and single.
    """

    pattern = EVERY

    def __init__(self) -> None:
        self._held = b""

    def feed(self, data: bytes) -> bytes:
        if self._held:
            data, self._held = self._held + data, b""
        if not any(start in data for start in _STARTS):
            return data
        return self.pattern.sub(self._take, data)

    def forget(self) -> None:
        """Half a sequence will not be completed."""
        self._held = b""

    def show(self, token: re.Match[bytes]) -> bytes:
        raise NotImplementedError

    def _take(self, token: re.Match[bytes]) -> bytes:
        if token.lastgroup != "partial":
            return self.show(token)
        piece = token.group()
        if len(piece) > _MOST_HELD:
            return piece
        self._held = piece
        return b""
