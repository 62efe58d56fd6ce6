"""Recognize the keys that detach: Ctrl-] anywhere, and ~. at the start of a line.

Text in a bracketed paste is never a key. Programs may enable newer keyboard protocols, in which Ctrl-]
arrives as an escape sequence.
"""

import re
from typing import NamedTuple

_TOKEN = re.compile(
    rb"(?P<paste>\x1b\[200~)|(?P<pasted>\x1b\[201~)"
    rb"|(?P<detach>\x1d|\x1b\[93;5(?::1)?u|\x1b\[27;5;93~)"
    rb"|(?P<newline>[\r\n])|(?P<tilde>~)|(?P<dot>\.)|(?P<other>\x1b|[^\x1b\x1d\r\n~.]+)"
)


class TypedInput(NamedTuple):
    """The bytes to send to the program, and whether the user detaches after them."""

    data: bytes
    detach: bool


class DetachKeys:
    """A filter for typed bytes. As in ssh, a tilde at the start of a line waits for the next key."""

    def __init__(self) -> None:
        self._line_start = True
        self._tilde = False
        self._pasting = False

    def feed(self, data: bytes) -> TypedInput:
        """Return what of the next typed bytes goes to the program, and whether they detach."""
        passed = bytearray()
        for token in _TOKEN.finditer(data):
            kind, text = token.lastgroup or "other", token.group()
            if self._pasting:
                self._pasting = kind != "pasted"
                passed += text
                continue
            if kind == "detach" or (self._tilde and kind == "dot"):
                return TypedInput(bytes(passed), detach=True)
            passed += self._pass(kind, text)
        return TypedInput(bytes(passed), detach=False)

    def _pass(self, kind: str, text: bytes) -> bytes:
        """Return the bytes to send for a key that does not detach; ~~ sends one tilde."""
        held, self._tilde = self._tilde, False
        if held and kind == "tilde":
            self._line_start = False
            return b"~"
        if kind == "tilde" and self._line_start:
            self._tilde = True
            return b""
        self._pasting = kind == "paste"
        self._line_start = kind == "newline"
        return b"~" + text if held else text
