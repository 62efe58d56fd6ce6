"""Decode short WebSocket text frames, such as a keystroke, without the general parser.

Only data that is exactly one frame, with the parser between two frames, is decoded here. All other data goes
to the parser.
"""

import struct

try:
    from websockets.speedups import apply_mask
except ImportError:  # where it was built without a compiler
    from websockets.utils import apply_mask

FINAL_TEXT_FRAME = 0x81  # FIN bit and text opcode
MASKED = 0x80
MASK_BYTES = 4
MAX_TEXT_BYTES = 125  # the longest payload whose length is in the second byte
_EXTENDED_LENGTHS = {126: struct.Struct("!H"), 127: struct.Struct("!Q")}


class FrameBounds:
    """Tracks, outside of the WebSocket parser, whether the stream is between two frames."""

    def __init__(self) -> None:
        self.between_frames = True
        self._missing = 0  # bytes that the current frame still needs
        self._lost = False  # data ended inside a frame head: the next boundary is unknown from now on

    def advance(self, data: bytes) -> None:
        """Account for bytes that go to the WebSocket parser."""
        position = self._missing
        while position < len(data) and not self._lost:
            size = _frame_size(data, position)
            self._lost = size is None
            position += size or 0
        self._missing = max(0, position - len(data))
        self.between_frames = not self._missing and not self._lost


def short_text(data: bytes) -> bytes | None:
    """Return the payload if the data is exactly one short masked WebSocket text frame, else None."""
    if not 2 + MASK_BYTES <= len(data) <= 2 + MASK_BYTES + MAX_TEXT_BYTES:
        return None
    if data[0] != FINAL_TEXT_FRAME or data[1] != MASKED | len(data) - 2 - MASK_BYTES:
        return None
    text = apply_mask(data[2 + MASK_BYTES :], data[2 : 2 + MASK_BYTES])
    return text if text.isascii() or _is_utf8(text) else None


def _is_utf8(data: bytes) -> bool:
    """Return whether the bytes are valid UTF-8."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _frame_size(data: bytes, start: int) -> int | None:
    """Return the size of the WebSocket frame at `start` in bytes, or None if its head is incomplete."""
    if start + 2 > len(data):
        return None
    length, head = data[start + 1] & ~MASKED, 2
    if number := _EXTENDED_LENGTHS.get(length):
        if start + head + number.size > len(data):
            return None
        (length,) = number.unpack_from(data, start + head)
        head += number.size
    return head + (MASK_BYTES if data[start + 1] & MASKED else 0) + length
