"""An event as a line of `events.jsonl`: as it goes over the wire, with a checksum."""

from collections.abc import Iterable
from datetime import datetime
from zlib import crc32

import msgspec
from msgspec import Struct

_MARK = b',"crc":"'
_TAIL = len(_MARK) + 10  # eight digits and `"}`


class Head(Struct, frozen=True, rename="camel"):
    """What a reader sorts an event by; the rest of the line is not looked at."""

    seq: int
    type: str
    timestamp: str

    @property
    def time(self) -> int:
        """Milliseconds since the epoch."""
        return round(datetime.fromisoformat(self.timestamp).timestamp() * 1000)


_heads = msgspec.json.Decoder(Head)


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


def read_head(wire: bytes) -> Head | None:
    """None for what has a right checksum and is no event all the same."""
    try:
        head = _heads.decode(wire)
        return head if 0 < head.seq < 1 << 63 and head.time >= 0 else None
    except (msgspec.DecodeError, ValueError, OverflowError):
        return None
