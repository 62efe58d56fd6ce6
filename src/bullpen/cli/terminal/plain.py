"""A program's output as text: what moves, asks or commands is left out, colours stay when wanted."""

import re

from ...wire.sequences import Sequences

_CONTROL_OR_COLOUR = re.compile(rb"(\x1b\[[\d;:]*m)|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_IDLE_RETURNS = re.compile(rb"\r*\n\r*")


class PlainTextConverter(Sequences):
    """Turns a terminal's bytes into lines for a pager, a file or another terminal."""

    def __init__(self, colours: bool) -> None:
        super().__init__()
        self._colours = colours
        self._waiting = b""  # returns at the end of a piece: the next one tells what they are good for
        self._at_start = True  # of a line

    def feed(self, data: bytes) -> bytes:
        text = self._waiting + _CONTROL_OR_COLOUR.sub(rb"\1", super().feed(data))
        text = _IDLE_RETURNS.sub(b"\n", text)
        if self._at_start:
            text = text.lstrip(b"\r")
        shown = text.rstrip(b"\r")
        self._waiting = text[len(shown) :]
        self._at_start = shown.endswith(b"\n") if shown else self._at_start
        return shown

    def replace_sequence(self, token: re.Match[bytes]) -> bytes:
        is_colour = _CONTROL_OR_COLOUR.fullmatch(token.group())
        return token.group() if self._colours and is_colour else b""
