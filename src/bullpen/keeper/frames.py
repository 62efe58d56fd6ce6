"""Encode and decode frames, the messages between a server and its keepers.

Running keepers may be older than this file. Never change a shape or a number; add a tag or an optional field.

    u32 length of the rest | u8 tag | u32 length of the header | header, a JSON object | body, raw bytes
"""

from __future__ import annotations

import json
import struct
from enum import IntEnum
from json.scanner import make_scanner

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    Frame = tuple[int, dict[str, Any], bytes]  # tag, header, body

# Of the whole keeper: raised when new children should no longer go to keepers that run already.
VERSION = 1
MAX_FRAME_BYTES = 80 << 20
# Notices that may be unacknowledged. With two, the server can send SEEN together with its next request, or
# once for both, which saves the keeper a wake-up for each echo.
MAX_NOTICES_IN_FLIGHT = 2
PREFIX = struct.Struct("!IBI")
_AFTER_LENGTH = PREFIX.size - 4


class Tag(IntEnum):
    """The kinds of frames; those from 128 on are sent by the keeper, HELLO by both sides."""

    HELLO = 1
    SPAWN = 2
    WRITE = 3
    RESIZE = 4
    SIGNAL = 5
    CLOSE_INPUT = 6
    STATUS = 7
    CONSUMED = 8
    ACK_EXIT = 9
    FORGET = 10
    SEEN = 11

    REPLY = 128
    FAULT = 129
    NOTICE = 130
    EXIT = 131


class BadFrame(Exception):
    """The bytes are not a frame: the peer does not speak this protocol."""


to_json = json.JSONEncoder(separators=(",", ":")).encode
# `JSONDecoder.decode` also looks for white space around the object, which neither side writes.
_from_json = make_scanner(json.JSONDecoder())  # type: ignore[arg-type]  # typeshed has it wrong


def encode(tag: int, header: dict[str, Any], body: bytes = b"") -> bytes:
    """Return the bytes of one frame."""
    return encode_json_header(tag, to_json(header), body)


def encode_json_header(tag: int, header: str, body: bytes = b"") -> bytes:
    """Return the bytes of one frame whose header is JSON already: `encode` is too slow for keystrokes.

    Raise ValueError if the frame is too long.
    """
    text = header.encode()
    length = _AFTER_LENGTH + len(text) + len(body)
    if length > MAX_FRAME_BYTES:
        raise ValueError(f"a frame of {length} bytes is longer than {MAX_FRAME_BYTES}")
    return PREFIX.pack(length, tag, len(text)) + text + body


class FrameDecoder:
    """Splits a byte stream into frames, and keeps an incomplete frame until the rest of it arrives."""

    def __init__(self) -> None:
        self._incomplete = bytearray()
        self._needed = 0  # bytes, until there is a whole frame or at least its length

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Yield each complete frame; keep an incomplete one for the next call.

        Each is decoded when it is taken, so the first need not wait for all.
        Raise BadFrame for invalid lengths.
        """
        if self._incomplete:  # rare
            self._incomplete += data
            if len(self._incomplete) < self._needed:
                return
            data = bytes(self._incomplete)
            self._incomplete.clear()
        position, size, needed = 0, len(data), PREFIX.size
        while size - position >= PREFIX.size:
            length, tag, header_length = PREFIX.unpack_from(data, position)
            if length > MAX_FRAME_BYTES or header_length > length - _AFTER_LENGTH:
                raise BadFrame(f"length {length}, header {header_length}")
            needed = 4 + length
            if size - position < needed:
                break
            start, position = position + PREFIX.size, position + needed
            body = start + header_length
            yield tag, _header(data[start:body]), data[body:position]
            needed = PREFIX.size
        if position < size:
            self._incomplete += data[position:]
            self._needed = needed


def _header(data: bytes) -> dict[str, Any]:
    """Return the JSON object in a header, or raise BadFrame."""
    try:
        text = str(data, "utf-8")
        header, end = _from_json(text, 0)
    except (ValueError, RecursionError, StopIteration) as error:
        raise BadFrame(str(error)) from error
    if end != len(text) or not isinstance(header, dict):
        raise BadFrame("the header is not an object")
    return header
