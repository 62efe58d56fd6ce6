"""Read zip files that may be hostile: check the directory first, and each member while it is unpacked.

Only stored and deflated members are read. Every other kind of member, and every disagreement between the
parts of the file, raises Invalid. Memory is bounded by `MAX_MEMBERS` and `CHUNK_BYTES`, whatever the file
claims.
"""

import os
import struct
import zlib
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

from ..domain.errors import Invalid

MAX_MEMBERS = 100_000
MAX_NAME_BYTES = 255
CHUNK_BYTES = 256 << 10  # unpacked at once

STORED, DEFLATED = 0, 8
_END = struct.Struct("<4s4H2LH")
_END64 = struct.Struct("<4sQ2H2L4Q")
_LOCATOR64 = struct.Struct("<4sLQL")
_ENTRY = struct.Struct("<4s4x2H4x3L4H6xL")
_LOCAL = struct.Struct("<4s2x2H4x3L2H")
_MAX_COMMENT = (1 << 16) - 1
_MAX_16, _MAX_32 = (1 << 16) - 1, (1 << 32) - 1
_KNOWN_FLAGS = 0b1000_0000_1110  # deflate options, sizes behind the data, UTF-8 names; not encryption
_SIZES_FOLLOW = 0b1000


class ZipMember(NamedTuple):
    """One file in the archive, as the central directory describes it."""

    name: str
    raw_name: bytes
    flags: int
    method: int
    crc: int
    packed: int  # bytes in the archive
    size: int  # bytes when unpacked
    offset: int  # of its local header


class ZipReader:
    """The members of a zip file. Raises Invalid if the directory is damaged or members share bytes."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        count, start, end = self._find_directory()
        self.members = list(self._read_directory(count, start, end))
        self._ends = self._check_places(start)
        if len({member.name for member in self.members}) != count:
            raise _damaged("a name occurs twice in it")

    def read(self, member: ZipMember) -> Iterator[bytes]:
        """Yield a member's content in pieces of CHUNK_BYTES; raise Invalid if it is not as declared."""
        left, checksum = member.size, 0
        for piece in self._unpack(member):
            left -= len(piece)
            if left < 0:
                raise _damaged(f"{member.name} is longer than declared")
            checksum = zlib.crc32(piece, checksum)
            yield piece
        if left:
            raise _damaged(f"{member.name} is shorter than declared")
        if checksum != member.crc:
            raise _damaged(f"{member.name} does not match its checksum")

    def _find_directory(self) -> tuple[int, int, int]:
        """Return the number of members, and where the central directory starts and ends.

        Raise Invalid if the file is damaged or has too many members.

        They are read from the end record of the file.
        """
        size = self._file.seek(0, os.SEEK_END)
        tail_start = max(0, size - _END.size - _MAX_COMMENT)
        tail = self._read_at(tail_start, size - tail_start)
        place = tail.rfind(b"PK\5\6")
        if place < 0 or len(tail) - place < _END.size:
            raise Invalid("this is not a zip file, or its end is missing")
        _, disk, first_disk, here, count, length, start, comment = _END.unpack_from(tail, place)
        if disk or first_disk or here != count or place + _END.size + comment != len(tail):
            raise _damaged("its end record makes no sense")
        end = tail_start + place
        if _MAX_16 in (count, here) or _MAX_32 in (length, start):
            count, length, start, end = self._read_zip64_end(end)
        if count > MAX_MEMBERS:
            raise Invalid(f"the zip file has {count:,} members, and at most {MAX_MEMBERS:,} are read")
        if start + length != end:
            raise _damaged("its directory is not where its end record says")
        return count, start, end

    def _read_zip64_end(self, before: int) -> tuple[int, int, int, int]:
        """Return number of members, size, start and end of the directory from the zip64 end record.

        Raise Invalid if the record is missing or damaged.
        """
        place = before - _LOCATOR64.size
        signature, disk, end, disks = _LOCATOR64.unpack(self._read_at(place, _LOCATOR64.size))
        if signature != b"PK\6\7" or disk or disks > 1 or end + _END64.size != place:
            raise _damaged("its zip64 end record is missing")
        signature, size, _, _, disk, first_disk, here, count, length, start = _END64.unpack(
            self._read_at(end, _END64.size)
        )
        if signature != b"PK\6\6" or size != _END64.size - 12 or disk or first_disk or here != count:
            raise _damaged("its zip64 end record makes no sense")
        return count, length, start, end

    def _read_directory(self, count: int, start: int, end: int) -> Iterator[ZipMember]:
        """Yield the members that the central directory describes; raise Invalid if one cannot be read."""
        place = start
        for _ in range(count):
            member, place = self._read_entry(place)
            yield member
        if place != end:
            raise _damaged("its directory does not have the size its end record says")

    def _read_entry(self, place: int) -> tuple[ZipMember, int]:
        """Return the member described at a place of the directory, and the place of the next one.

        Raise Invalid if the entry is damaged.
        """
        signature, flags, method, crc, packed, size, *sizes, disk, offset = _ENTRY.unpack(
            self._read_at(place, _ENTRY.size)
        )
        name_size, extra_size, comment_size = sizes
        if signature != b"PK\1\2" or disk:
            raise _damaged("an entry of its directory makes no sense")
        if not 0 < name_size <= MAX_NAME_BYTES:
            raise Invalid(
                f"a name in the zip file has {name_size} bytes, and at most {MAX_NAME_BYTES} are read"
            )
        rest = self._read_at(place + _ENTRY.size, name_size + extra_size)
        raw_name, extra = rest[:name_size], rest[name_size:]
        size, packed, offset = _widened((size, packed, offset), extra)
        name = raw_name.decode("utf-8", "replace")
        member = ZipMember(name, raw_name, flags, method, crc, packed, size, offset)
        _require_readable(member)
        return member, place + _ENTRY.size + name_size + extra_size + comment_size

    def _check_places(self, directory: int) -> dict[str, int]:
        """Return where the bytes of each member end at the latest; raise Invalid if two share any."""
        ordered = sorted(self.members, key=lambda member: member.offset)
        ends = [*(member.offset for member in ordered), directory][1:]
        for member, end in zip(ordered, ends, strict=True):
            if member.offset + _LOCAL.size + len(member.raw_name) + member.packed > end:
                raise _damaged(f"{member.name} overlaps what follows it")
        return {member.name: end for member, end in zip(ordered, ends, strict=True)}

    def _unpack(self, member: ZipMember) -> Iterator[bytes]:
        """Yield the unpacked content of a member of the zip file."""
        start = self._data_start(member)
        packed = self._packed(start, member.packed)
        return packed if member.method == STORED else _inflate(packed, member.name)

    def _data_start(self, member: ZipMember) -> int:
        """Return where a member's data starts; raise Invalid if its local header differs from its entry."""
        header = self._read_at(member.offset, _LOCAL.size)
        signature, flags, method, crc, packed, size, name_size, extra_size = _LOCAL.unpack(header)
        rest = self._read_at(member.offset + _LOCAL.size, name_size + extra_size)
        expected = (b"PK\3\4", member.flags, member.method, member.raw_name)
        if (signature, flags, method, rest[:name_size]) != expected:
            raise _damaged(f"{member.name} differs from its entry in the directory")
        size, packed, _ = _widened((size, packed, 0), rest[name_size:])
        if not flags & _SIZES_FOLLOW and (crc, packed, size) != (member.crc, member.packed, member.size):
            raise _damaged(f"{member.name} differs from its entry in the directory")
        start: int = member.offset + _LOCAL.size + name_size + extra_size
        if start + member.packed > self._ends[member.name]:
            raise _damaged(f"{member.name} overlaps what follows it")
        return start

    def _packed(self, start: int, size: int) -> Iterator[bytes]:
        """Yield the packed bytes of a member."""
        for place in range(start, start + size, CHUNK_BYTES):
            yield self._read_at(place, min(CHUNK_BYTES, start + size - place))

    def _read_at(self, place: int, size: int) -> bytes:
        """Return `size` bytes at a place of the file, or raise Invalid if they are missing."""
        if place < 0:
            raise _damaged("a part of it is missing")
        self._file.seek(place)
        data = self._file.read(size)
        if len(data) != size:
            raise _damaged("a part of it is missing")
        return data


def _inflate(packed: Iterator[bytes], name: str) -> Iterator[bytes]:
    """Yield the content of deflated data; raise Invalid if the data is not a complete deflate stream."""
    inflater = zlib.decompressobj(-zlib.MAX_WBITS)
    try:
        for piece in packed:
            if inflater.eof:
                raise _damaged(f"bytes follow the end of {name}")
            yield inflater.decompress(piece, CHUNK_BYTES)
            while inflater.unconsumed_tail:
                yield inflater.decompress(inflater.unconsumed_tail, CHUNK_BYTES)
        while not inflater.eof and (rest := inflater.decompress(b"", CHUNK_BYTES)):
            yield rest
    except zlib.error:
        raise _damaged(f"{name} is not deflated data") from None
    if not inflater.eof:
        raise _damaged(f"{name} ends too early")
    if inflater.unused_data:
        raise _damaged(f"bytes follow the end of {name}")


def _require_readable(member: ZipMember) -> None:
    """Raise Invalid if a zip member is encrypted or packed in an unsupported way."""
    if member.flags & ~_KNOWN_FLAGS:
        raise Invalid(f"{member.name} in the zip file is encrypted or needs a feature that is not read")
    if member.method not in (STORED, DEFLATED):
        raise Invalid(f"{member.name} in the zip file is neither stored nor deflated")
    if member.method == STORED and member.packed != member.size:
        raise _damaged(f"{member.name} is stored and has two sizes")


def _widened(numbers: tuple[int, int, int], extra: bytes) -> tuple[int, int, int]:
    """Return size, packed size and offset; those that do not fit 32 bits are in the zip64 extra field."""
    wide = _zip64_field(extra)
    places = iter(range(0, len(wide) - 7, 8))

    def widen(number: int) -> int:
        if number != _MAX_32 or (place := next(places, None)) is None:
            return number
        return int.from_bytes(wide[place : place + 8], "little")

    size, packed, offset = map(widen, numbers)
    return size, packed, offset


def _zip64_field(extra: bytes) -> bytes:
    """Return the zip64 part of an extra field; empty if there is none."""
    while len(extra) >= 4:
        kind, size = struct.unpack_from("<2H", extra)
        if kind == 1:
            return extra[4 : 4 + size]
        extra = extra[4 + size :]
    return b""


def _damaged(why: str) -> Invalid:
    """Return the error for a damaged zip file."""
    return Invalid(f"the zip file is damaged: {why}")
