"""An event as a line of `events.jsonl`: as it goes over the wire, with a checksum."""

import re
from collections.abc import Iterable
from datetime import datetime
from zlib import crc32

import msgspec
from msgspec import Raw, Struct

from . import jsonrpc

MAX_LINE = jsonrpc.MAX_LINE + (1 << 20)  # bytes: an event tells of one line of an agent at most
MAX_VALUES = 1 << 20  # in one event: a value takes two bytes of a line, and up to a hundred of memory

_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_MARK = b',"crc":"'
_TAIL = len(_MARK) + 10  # eight digits and `"}`


class LineHead(Struct, frozen=True, rename="camel"):
    """What a reader sorts an event by; the rest of the line is not looked at."""

    seq: int
    type: str
    timestamp: str
    worker_id: str | None
    role: str | None
    data: Raw

    @property
    def time(self) -> int:
        """Milliseconds since the epoch."""
        return round(datetime.fromisoformat(self.timestamp).timestamp() * 1000)


_heads = msgspec.json.Decoder(LineHead)


def event_line(wire: bytes) -> bytes:
    """The line of an event that is JSON already."""
    return b'%b%b%08x"}\n' % (wire[:-1], _MARK, crc32(wire))


def event_lines(wires: Iterable[bytes]) -> bytes:
    return b"".join(map(event_line, wires))


def read_line(line: bytes) -> bytes | None:
    """The event of a line without its newline, as on the wire; None when it is not as it was written."""
    if line[-_TAIL:-10] != _MARK or line[-2:] != b'"}':
        return None
    wire = line[:-_TAIL] + b"}"
    return wire if b"%08x" % crc32(wire) == line[-10:-2] else None


def read_head(wire: bytes) -> LineHead | None:
    """Return None if the line has the right checksum and is not an event, or one too large to be read."""
    if _values_exceed(wire, MAX_VALUES):
        return None
    try:
        head = _heads.decode(wire)
        return head if 0 < head.seq < 1 << 63 and head.time >= 0 else None
    except (msgspec.DecodeError, ValueError, OverflowError, RecursionError):
        return None


def _values_exceed(wire: bytes, limit: int) -> bool:
    """Whether JSON may stand for more than `limit` values; what stands in strings does not count."""
    return _separators(wire) > limit and _separators(_STRING.sub(b"", wire)) > limit


def _separators(data: bytes) -> int:
    return data.count(b",") + data.count(b"[") + data.count(b"{")
