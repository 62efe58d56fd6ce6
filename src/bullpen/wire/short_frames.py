"""Short texts of a WebSocket, read without its parser: a key is thirty bytes, and waits for nothing else.

Only what lies whole between two frames is taken; everything else is the parser's, which then sees all of it.
"""

import struct

try:
    from websockets.speedups import apply_mask
except ImportError:  # where it was built without a compiler
    from websockets.utils import apply_mask

WHOLE_TEXT = 0x81  # the last, and only, piece of a text
MASKED = 0x80
MASK = 4  # bytes
LONGEST = 125  # bytes whose number stands in the head itself
_LONG = {126: struct.Struct("!H"), 127: struct.Struct("!Q")}


class FrameBounds:
    """Where a stream of frames stands, seen from outside of its parser."""

    def __init__(self) -> None:
        self.between_frames = True
        self._missing = 0  # bytes of a frame that has begun
        self._lost = False  # in the middle of a head: where the next frame begins is the parser's secret

    def walk(self, data: bytes) -> None:
        """These bytes go to the parser."""
        position = self._missing
        while position < len(data) and not self._lost:
            size = _frame_size(data, position)
            self._lost = size is None
            position += size or 0
        self._missing = max(0, position - len(data))
        self.between_frames = not self._missing and not self._lost


def short_text(data: bytes) -> bytes | None:
    """The text of data that are exactly one short frame as a client sends it; None: let the parser see."""
    if not 2 + MASK <= len(data) <= 2 + MASK + LONGEST:
        return None
    if data[0] != WHOLE_TEXT or data[1] != MASKED | len(data) - 2 - MASK:
        return None
    text = apply_mask(data[2 + MASK :], data[2 : 2 + MASK])
    return text if text.isascii() or _is_utf8(text) else None


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _frame_size(data: bytes, start: int) -> int | None:
    """Bytes from the beginning of a frame to its end; None when its head is cut."""
    if start + 2 > len(data):
        return None
    length, head = data[start + 1] & ~MASKED, 2
    if number := _LONG.get(length):
        if start + head + number.size > len(data):
            return None
        (length,) = number.unpack_from(data, start + head)
        head += number.size
    return head + (MASK if data[start + 1] & MASKED else 0) + length
