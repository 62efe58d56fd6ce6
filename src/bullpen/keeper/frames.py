"""Frames between a server and its keepers: how one message is laid out in bytes.

Running keepers are older than this file. Never change a shape or a number; add a tag or an optional field.

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

VERSION = (
    1  # of the keeper as a whole: raised when new children should no longer go to keepers already running
)
MAX_FRAME = 80 << 20
# Notices that may wait for SEEN. The second lets the server say it when it has something else to say, or for
# both: a wake-up less for each echo.
IN_FLIGHT = 2
PREFIX = struct.Struct("!IBI")
_AFTER_LENGTH = PREFIX.size - 4


class Tag(IntEnum):
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
    """The peer does not speak this protocol."""


to_json = json.JSONEncoder(separators=(",", ":")).encode
# `decode` also looks for white space round it: nobody here writes any.
_from_json = make_scanner(json.JSONDecoder())  # type: ignore[arg-type]  # typeshed has it wrong


def encode(tag: int, header: dict[str, Any], body: bytes = b"") -> bytes:
    return frame(tag, to_json(header), body)


def frame(tag: int, header: str, body: bytes = b"") -> bytes:
    """The same for a header that is JSON already: that of a key and its echo is made by hand."""
    text = header.encode()
    length = _AFTER_LENGTH + len(text) + len(body)
    if length > MAX_FRAME:
        raise ValueError(f"a frame of {length} bytes is longer than {MAX_FRAME}")
    return PREFIX.pack(length, tag, len(text)) + text + body


class FrameDecoder:
    """Takes bytes as they come, gives whole frames; what is incomplete waits inside."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._wanted = 0  # bytes of it that make a difference

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Each is read when it is asked for: who waits for the first does not wait for the others."""
        if self._rest:  # seldom
            self._rest += data
            if len(self._rest) < self._wanted:
                return
            data = bytes(self._rest)
            self._rest.clear()
        position, size, wanted = 0, len(data), PREFIX.size
        while size - position >= PREFIX.size:
            length, tag, header_length = PREFIX.unpack_from(data, position)
            if length > MAX_FRAME or header_length > length - _AFTER_LENGTH:
                raise BadFrame(f"length {length}, header {header_length}")
            wanted = 4 + length
            if size - position < wanted:
                break
            start, position = position + PREFIX.size, position + wanted
            body = start + header_length
            yield tag, _header(data[start:body]), data[body:position]
            wanted = PREFIX.size
        if position < size:
            self._rest += data[position:]
            self._wanted = wanted


def _header(data: bytes) -> dict[str, Any]:
    try:
        text = str(data, "utf-8")
        header, end = _from_json(text, 0)
    except (ValueError, RecursionError, StopIteration) as error:
        raise BadFrame(str(error)) from error
    if end != len(text) or not isinstance(header, dict):
        raise BadFrame("the header is not an object")
    return header
