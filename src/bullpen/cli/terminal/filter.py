"""What of a program's output a viewer's terminal may see: everything that draws, nothing that asks.

The server's screen answers what programs ask. A viewer's terminal that saw the question too would type
a second answer into the program, and any number of old ones when history is drawn.
"""

import re

from ...wire.sequences import ALL_BUT_DRAWING, Sequences
from .modes import TerminalModes

_LARGEST_NUMBER = b"9999"  # some terminals take minutes over a larger count

_SHAPE = re.compile(rb"([<=>?]?)([\d;:]*)([\x20-\x2f]*[\x40-\x7e])")
_CONTROLS = bytes(range(0x20))
_LONG_NUMBER = re.compile(rb"\d{5,}")
_REPORTS = frozenset(
    {
        (b"", b"n"),
        (b"?", b"n"),
        (b"", b"c"),
        (b">", b"c"),
        (b"=", b"c"),
        (b">", b"q"),
        (b"?", b"u"),
        (b"", b"x"),
    }
    | {(b"", b"$p"), (b"?", b"$p"), (b"", b"*y"), (b"", b"'|"), (b"?", b"S"), (b"", b"#R"), (b"", b"#S")}
    | {(b"", b"$w"), (b"", b"$u"), (b"", b'"v'), (b"", b"&u")}
)
_TITLE_STACK = (b"22", b"23")
_SILENT_COMMANDS = frozenset({b"0", b"1", b"2", b"7", b"8", b"9", b"133", b"777"})  # titles, links, marks
_CLIPBOARD = frozenset({b"52", b"5522"})
_QUESTION = re.compile(rb"(?:^|;)\?|=\?(?:;|$)|^Re(?:port|quest)")
_ASKING_STRINGS = (b"$q", b"+q", b"tmux;")


class OutputFilter(Sequences):
    """Lets through what draws, and remembers what it changed."""

    pattern = ALL_BUT_DRAWING

    def __init__(self) -> None:
        super().__init__()
        self.modes = TerminalModes()

    def restore(self) -> bytes:
        """Gives the terminal back."""
        self.discard_partial()
        return self.modes.restore()

    def replace_sequence(self, token: re.Match[bytes]) -> bytes:
        match token.lastgroup:
            case "csi":
                return self._show_control(token)
            case "osc":
                return self._show_command(token)
            case "string":
                return _show_string(token)
            case _:
                return self._show_single(token.group())

    def _show_control(self, token: re.Match[bytes]) -> bytes:
        shape = _SHAPE.fullmatch(token["csi"].translate(None, _CONTROLS))
        if shape is None:
            return token.group()
        prefix, numbers, final = shape.groups()
        parameters = numbers.split(b";")
        if (prefix, final) in _REPORTS or (final == b"t" and parameters[0] not in _TITLE_STACK):
            return b""
        if prefix == b"?" and final in (b"h", b"l"):
            self.modes.saw_private(parameters, on=final == b"h")
        elif final == b"!p":
            self.modes.reset()
        else:
            self.modes.saw_control(prefix, final)
        return _LONG_NUMBER.sub(_LARGEST_NUMBER, token.group())

    def _show_command(self, token: re.Match[bytes]) -> bytes:
        number, _, rest = token["osc"].partition(b";")
        if number in _SILENT_COMMANDS:
            return token.group()
        if number in _CLIPBOARD or _QUESTION.search(rest):
            return b""
        self.modes.saw_colour(number)
        return token.group()

    def _show_single(self, sequence: bytes) -> bytes:
        if sequence in (b"\x1bZ", b"\x05"):
            return b""
        if sequence == b"\x1bc":
            self.modes.reset()
        return sequence


def _show_string(token: re.Match[bytes]) -> bytes:
    """Of strings only device control draws (images); the others command or ask."""
    device_control = token["intro"] in (b"\x1bP", b"\xc2\x90")
    if not device_control or token["string"].lstrip(b"0123456789;").startswith(_ASKING_STRINGS):
        return b""
    return token.group()
