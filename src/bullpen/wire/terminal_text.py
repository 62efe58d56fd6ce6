"""What a terminal printed, as text that can be found: in pieces, each with the offset it began at.

Sequences are taken out. Where the cursor is sent elsewhere a line ends: programs that draw a screen hardly
ever end one otherwise. They also draw the same lines again and again; a line counts once in a while.
"""

import re
from collections import OrderedDict
from collections.abc import Iterator
from typing import NamedTuple

from .sequences import EVERY

PIECE = 2 << 10  # bytes, about
HALF = 4 << 10  # bytes without an end of a line that are waited with
LONGEST_WORD = 200  # letters; a longer one is an image or a key, and nobody types it
REMEMBERED = 500  # lines

_MOVES = frozenset(b"HfABEFdJLMST")  # the last letters of sequences after which text stands elsewhere
_SPACES = frozenset(b"CGI")
_BREAK = re.compile(r"[\r\n\x0b\x0c\x85]+")
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x9f]")


class TextPiece(NamedTuple):
    offset: int
    text: str


class TerminalText:
    """Reads what one run of a terminal printed, in order."""

    def __init__(self) -> None:
        self._recent: OrderedDict[str, None] = OrderedDict()

    def read(self, data: bytes, offset: int) -> list[TextPiece]:
        """The new text in some output that began at an offset."""
        found = []
        for start, piece in _pieces(data):
            if lines := [line for line in _lines(piece) if self._is_new(line)]:
                found.append(TextPiece(offset + start, "\n".join(lines)))
        return found

    def _is_new(self, line: str) -> bool:
        new = line not in self._recent
        self._recent[line] = None
        self._recent.move_to_end(line)
        if len(self._recent) > REMEMBERED:
            self._recent.popitem(last=False)
        return new


def whole(data: bytes) -> int:
    """How much of some output can be read before the rest comes."""
    if end := data.rfind(b"\n") + 1:
        return end
    return max(0, data.rfind(b"\x1b")) if len(data) >= HALF else 0


def _pieces(data: bytes) -> Iterator[tuple[int, bytes]]:
    start = 0
    while start < len(data):
        end = start + PIECE
        line = data.find(b"\n", end, end + PIECE) + 1
        sequence = data.find(b"\x1b", end)
        end = line or (sequence if sequence > 0 else len(data))
        yield start, data[start:end]
        start = end


def _lines(piece: bytes) -> Iterator[str]:
    text = EVERY.sub(_space, piece).decode(errors="replace")
    for line in _BREAK.split(text):
        words = _CONTROL.sub("", line).split()
        if shown := " ".join(word for word in words if len(word) <= LONGEST_WORD):
            yield shown


def _space(token: re.Match[bytes]) -> bytes:
    last = (token["csi"] or b"\x00")[-1]
    if last in _MOVES:
        return b"\n"
    return b" " if last in _SPACES else b""
