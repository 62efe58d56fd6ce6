"""Convert terminal output to plain text, optionally with its colours."""

import re

from ...wire.sequences import Sequences

_CONTROL_OR_COLOUR = re.compile(rb"(\x1b\[[\d;:]*m)|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_RETURNS_AT_NEWLINE = re.compile(rb"\r*\n\r*")


class PlainTextConverter(Sequences):
    """Converts terminal output to lines for a pager, a file or another terminal."""

    def __init__(self, colours: bool) -> None:
        super().__init__()
        self._colours = colours
        self._held_returns = b""  # at the end of a chunk: a newline may follow in the next one
        self._at_line_start = True

    def feed(self, data: bytes) -> bytes:
        """Return the text of the next chunk of output."""
        text = self._held_returns + _CONTROL_OR_COLOUR.sub(rb"\1", super().feed(data))
        text = _RETURNS_AT_NEWLINE.sub(b"\n", text)
        if self._at_line_start:
            text = text.lstrip(b"\r")
        shown = text.rstrip(b"\r")
        self._held_returns = text[len(shown) :]
        self._at_line_start = shown.endswith(b"\n") if shown else self._at_line_start
        return shown

    def replace_sequence(self, token: re.Match[bytes]) -> bytes:
        """Return a colour sequence if colours are wanted, and nothing for any other sequence."""
        is_colour = _CONTROL_OR_COLOUR.fullmatch(token.group())
        return token.group() if self._colours and is_colour else b""
