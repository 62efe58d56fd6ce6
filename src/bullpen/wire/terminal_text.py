"""Extract searchable text from terminal output, in pieces that each have an offset.

Control sequences are removed. A cursor movement ends a line, because full-screen programs rarely print
newlines. Lines that were printed recently are skipped, because such programs draw the same lines again and
again.
"""

import re
from collections import OrderedDict
from collections.abc import Iterator
from typing import NamedTuple

from .sequences import EVERY_SEQUENCE

PIECE_BYTES = 2 << 10  # approximate size of a document
MAX_HELD_BYTES = 4 << 10  # output without a newline that waits for its next piece
MAX_WORD_LENGTH = 200  # a longer word is encoded data, which is not searched for
REMEMBERED_LINES = 500

_MOVES = frozenset(b"HfABEFdJLMST")  # final bytes of sequences that move the cursor to another line
_SPACES = frozenset(b"CGI")
_BREAK = re.compile(r"[\r\n\x0b\x0c\x85]+")
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x9f]")


class TextPiece(NamedTuple):
    """A piece of text and the offset at which it begins in the output."""

    offset: int
    text: str


class TerminalText:
    """Extracts the searchable text from the output of one run of a terminal, in order."""

    def __init__(self) -> None:
        self._recent: OrderedDict[str, None] = OrderedDict()

    def read(self, data: bytes, offset: int) -> list[TextPiece]:
        """Return the new text in output that begins at `offset`."""
        found = []
        for start, piece in _pieces(data):
            if lines := [line for line in _lines(piece) if self._is_new(line)]:
                found.append(TextPiece(offset + start, "\n".join(lines)))
        return found

    def _is_new(self, line: str) -> bool:
        """Return whether a line was not printed recently, and remember it."""
        new = line not in self._recent
        self._recent[line] = None
        self._recent.move_to_end(line)
        if len(self._recent) > REMEMBERED_LINES:
            self._recent.popitem(last=False)
        return new


def complete_length(data: bytes) -> int:
    """Return how many bytes of terminal output end with a complete line, and can be read now."""
    if end := data.rfind(b"\n") + 1:
        return end
    return max(0, data.rfind(b"\x1b")) if len(data) >= MAX_HELD_BYTES else 0


def _pieces(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield (offset, bytes) of pieces of terminal output that end at a line or before a sequence."""
    start = 0
    while start < len(data):
        end = start + PIECE_BYTES
        line = data.find(b"\n", end, end + PIECE_BYTES) + 1
        sequence = data.find(b"\x1b", end)
        end = line or (sequence if sequence > 0 else len(data))
        yield start, data[start:end]
        start = end


def _lines(piece: bytes) -> Iterator[str]:
    """Yield the lines of text in a piece of terminal output."""
    text = EVERY_SEQUENCE.sub(_replacement, piece).decode(errors="replace")
    for line in _BREAK.split(text):
        words = _CONTROL.sub("", line).split()
        if line_text := " ".join(word for word in words if len(word) <= MAX_WORD_LENGTH):
            yield line_text


def _replacement(token: re.Match[bytes]) -> bytes:
    """Return the bytes that take the place of a control sequence: a newline, a space or no bytes."""
    last = (token["csi"] or b"\x00")[-1]
    if last in _MOVES:
        return b"\n"
    return b" " if last in _SPACES else b""
