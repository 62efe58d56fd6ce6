"""Encode and decode the lines of `events.jsonl`: an event as JSON, with a checksum."""

import re
from collections.abc import Iterable
from datetime import datetime
from zlib import crc32

import msgspec
from msgspec import Raw, Struct

from . import jsonrpc

MAX_LINE_BYTES = jsonrpc.MAX_LINE_BYTES + (1 << 20)  # an event holds at most one line of an agent
MAX_VALUES = 1 << 20  # in one event: a value of two bytes can take a hundred bytes of memory

_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_MARK = b',"crc":"'
_TAIL = len(_MARK) + 10  # eight digits and `"}`


class LineHead(Struct, frozen=True, rename="camel"):
    """The fields by which a reader of `events.jsonl` sorts an event. The data is not parsed."""

    seq: int
    type: str
    timestamp: str
    worker_id: str | None
    role: str | None
    data: Raw

    @property
    def time(self) -> int:
        """The time in milliseconds since the epoch."""
        return round(datetime.fromisoformat(self.timestamp).timestamp() * 1000)


_heads = msgspec.json.Decoder(LineHead)


def event_line(wire: bytes) -> bytes:
    """Return the line of `events.jsonl`, with checksum, for an event in JSON."""
    return b'%b%b%08x"}\n' % (wire[:-1], _MARK, crc32(wire))


def event_lines(wires: Iterable[bytes]) -> bytes:
    """Return the lines of `events.jsonl`, with checksums, for several events in JSON."""
    return b"".join(map(event_line, wires))


def read_line(line: bytes) -> bytes | None:
    """Return the JSON of the event in a line of `events.jsonl`, or None if the checksum is wrong."""
    if line[-_TAIL:-10] != _MARK or line[-2:] != b'"}':
        return None
    wire = line[:-_TAIL] + b"}"
    return wire if b"%08x" % crc32(wire) == line[-10:-2] else None


def read_head(wire: bytes) -> LineHead | None:
    """Return the head of an event in JSON, or None if it is not an event or too large to be read."""
    if _values_exceed(wire, MAX_VALUES):
        return None
    try:
        head = _heads.decode(wire)
        return head if 0 < head.seq < 1 << 63 and head.time >= 0 else None
    except (msgspec.DecodeError, ValueError, OverflowError, RecursionError):
        return None


def _values_exceed(wire: bytes, limit: int) -> bool:
    """Return whether the JSON may hold more than `limit` values; separators in strings do not count."""
    return _separators(wire) > limit and _separators(_STRING.sub(b"", wire)) > limit


def _separators(data: bytes) -> int:
    """Return an upper bound of the values in the JSON: the number of commas and opening brackets."""
    return data.count(b",") + data.count(b"[") + data.count(b"{")
