"""Remove terminal queries from a program's output before the user's terminal draws it.

The server's screen answers the queries of programs. If the user's terminal received them too, it would type a
second answer into the program, and answers to old queries whenever a history is drawn.
"""

import re

from ...wire.sequences import ALL_BUT_DRAWING, Sequences
from .modes import TerminalModes

_MAX_PARAMETER = b"9999"  # some terminals need minutes for a larger count

_CONTROL_SEQUENCE = re.compile(rb"([<=>?]?)([\d;:]*)([\x20-\x2f]*[\x40-\x7e])")
_CONTROLS = bytes(range(0x20))
_LONG_PARAMETER = re.compile(rb"\d{5,}")
_QUERIES = frozenset(
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
_TITLES = frozenset({b"0", b"2"})
_UNANSWERED_COMMANDS = frozenset({b"1", b"7", b"8", b"9", b"133", b"777"})  # icons, links, notices, marks
_CLIPBOARD = frozenset({b"52", b"5522"})
_QUERY_ARGUMENT = re.compile(rb"(?:^|;)\?|=\?(?:;|$)|^Re(?:port|quest)")
_QUERY_STRINGS = (b"$q", b"+q", b"tmux;")


class OutputFilter(Sequences):
    """A filter that keeps what draws, and records the changed terminal modes."""

    pattern = ALL_BUT_DRAWING

    def __init__(self) -> None:
        super().__init__()
        self.modes = TerminalModes()
        self.title = b""  # the last sequence with which the program has set the title
        self.holds_titles = False  # hold titles back while Bullpen shows its own title

    def restore(self) -> bytes:
        """Return the bytes that reset the modes that the output has changed."""
        self.discard_partial()
        return self.modes.restore()

    def replace_sequence(self, token: re.Match[bytes]) -> bytes:
        """Return what is left of a sequence, and record the modes that it sets.

        Queries, requests for the clipboard and held titles are removed.
        """
        match token.lastgroup:
            case "csi":
                return self._filter_control(token)
            case "osc":
                return self._filter_command(token)
            case "string":
                return _filter_string(token)
            case _:
                return self._filter_single(token.group())

    def _filter_control(self, token: re.Match[bytes]) -> bytes:
        """Return a control sequence (CSI) without long parameters, or nothing for a query."""
        sequence = _CONTROL_SEQUENCE.fullmatch(token["csi"].translate(None, _CONTROLS))
        if sequence is None:
            return token.group()
        prefix, numbers, final = sequence.groups()
        parameters = numbers.split(b";")
        if (prefix, final) in _QUERIES or (final == b"t" and parameters[0] not in _TITLE_STACK):
            return b""
        if prefix == b"?" and final in (b"h", b"l"):
            self.modes.record_private(parameters, on=final == b"h")
        elif final == b"!p":
            self.modes.reset()
        else:
            self.modes.record_control(prefix, final)
        return _LONG_PARAMETER.sub(_MAX_PARAMETER, token.group())

    def _filter_command(self, token: re.Match[bytes]) -> bytes:
        """Return an operating system command (OSC), or nothing for a query, the clipboard or a held title.

        The last title is kept in `title`.
        """
        number, _, rest = token["osc"].partition(b";")
        if number in _TITLES:
            self.title = token.group()
            return b"" if self.holds_titles else self.title
        if number in _UNANSWERED_COMMANDS:
            return token.group()
        if number in _CLIPBOARD or _QUERY_ARGUMENT.search(rest):
            return b""
        self.modes.record_colour(number)
        return token.group()

    def _filter_single(self, sequence: bytes) -> bytes:
        """Return a short sequence, or nothing for a query."""
        if sequence in (b"\x1bZ", b"\x05"):
            return b""
        if sequence == b"\x1bc":
            self.modes.reset()
        return sequence


def _filter_string(token: re.Match[bytes]) -> bytes:
    """Keep only device control strings, which draw images; other strings are commands or queries."""
    device_control = token["intro"] in (b"\x1bP", b"\xc2\x90")
    if not device_control or token["string"].lstrip(b"0123456789;").startswith(_QUERY_STRINGS):
        return b""
    return token.group()
