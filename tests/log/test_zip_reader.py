"""Zip files built byte by byte: they are read if all their numbers agree, and else refused with a reason."""

import io
import struct
import zlib
from typing import Any
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile

import pytest

from bullpen.domain.errors import Invalid
from bullpen.log.zip_reader import CHUNK_BYTES, MAX_MEMBERS, MAX_NAME_BYTES, ZipReader

TEXT = b"hello " * 9
MANY = bytes(range(256)) * 2048  # two chunks
MAX_32 = 0xFFFFFFFF


def deflated(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


def member(name: bytes = b"a", content: bytes = TEXT, **changes: Any) -> dict[str, Any]:
    """Return the fields of a stored member; `local_…` changes a field only in its local header."""
    data = changes.get("data", content)
    fields = {
        "name": name,
        "data": data,
        "flags": 0,
        "method": 0,
        "crc": zlib.crc32(content),
        "packed": len(data),
        "size": len(content),
        "extra": b"",
        "comment": b"",
        "disk": 0,
        "signature": b"PK\1\2",
        "local_signature": b"PK\3\4",
    } | changes
    for each in ("name", "flags", "method", "crc", "packed", "size", "extra"):
        fields.setdefault(f"local_{each}", fields[each])
    return fields


def packed_member(name: bytes = b"a", content: bytes = TEXT, **changes: Any) -> dict[str, Any]:
    return member(name, content, **({"method": 8, "data": deflated(content)} | changes))


def wide(*numbers: int) -> bytes:
    """Return a zip64 extra field after another one."""
    return struct.pack("<2H3s", 9, 3, b"xyz") + struct.pack(
        f"<2H{len(numbers)}Q", 1, 8 * len(numbers), *numbers
    )


def archive(
    *members: dict[str, Any], before: bytes = b"", zip64: dict[str, Any] | None = None, **end: Any
) -> bytes:
    """Return the bytes of a zip file; `end` and `zip64` change the numbers in its end records."""
    out: bytes = before
    directory = b""
    for each in members:
        offset = each.get("offset", len(out))
        local = (each["local_flags"], each["local_method"], each["local_crc"], each["local_packed"])
        lengths = (each["local_size"], len(each["local_name"]), len(each["local_extra"]))
        header = struct.pack("<4sHHH4xLLLHH", each["local_signature"], 20, *local[:2], *local[2:], *lengths)
        out += header + each["local_name"] + each["local_extra"] + each["data"]
        sizes = (each["crc"], each["packed"], each["size"], len(each["name"]), len(each["extra"]))
        directory += struct.pack(
            "<4s4xHH4xLLLHHHH6xL",
            each["signature"],
            each["flags"],
            each["method"],
            *sizes,
            len(each["comment"]),
            each["disk"],
            offset,
        )
        directory += each["name"] + each["extra"] + each["comment"]
    numbers = {
        "count": len(members),
        "length": len(directory),
        "start": len(out),
        "disk": 0,
        "first": 0,
    } | end
    numbers.setdefault("here", numbers["count"])
    tail = b""
    if zip64 is not None:
        zip64_offset = len(out) + len(directory)
        long = (
            numbers
            | {"size": 44, "mark": b"PK\6\6", "locator": b"PK\6\7", "at": zip64_offset, "disks": 1}
            | zip64
        )
        long.setdefault("locator_disk", 0)
        tail = struct.pack(
            "<4sQ2H2L4Q",
            *(long["mark"], long["size"], 45, 45, long["disk"], long["first"]),
            *(long.get("here64", long["here"]), long["count"], long["length"], long["start"]),
        )
        tail += struct.pack("<4sLQL", long["locator"], long["locator_disk"], long["at"], long["disks"])
        numbers |= {"count": 0xFFFF, "here": 0xFFFF, "length": MAX_32, "start": MAX_32}
        numbers |= zip64.get("short", {})
    comment: bytes = numbers.get("comment", b"")
    order = [numbers[name] for name in ("disk", "first", "here", "count", "length", "start")]
    comment_size = numbers.get("comment_size", len(comment))
    return out + directory + tail + struct.pack("<4s4H2LH", b"PK\5\6", *order, comment_size) + comment


def contents(data: bytes) -> dict[str, bytes]:
    reader = ZipReader(io.BytesIO(data))
    return {each.name: b"".join(reader.read(each)) for each in reader.members}


@pytest.mark.parametrize(
    "data",
    [
        archive(member(), packed_member(b"b", b"x")),
        archive(member(), packed_member(b"b", b"x"), comment=b"c" * 65535),
        archive(member(), packed_member(b"b", b"x"), before=b"#!/bin/sh\n" * 9),
        archive(member(extra=b"more", comment=b"said"), packed_member(b"b", b"x", local_extra=b"less")),
        archive(member(), packed_member(b"b", b"x"), zip64={}),
        archive(member(), packed_member(b"b", b"x"), zip64={"short": {"count": 2, "here": 2, "length": 100}}),
        archive(member(), packed_member(b"b", b"x"), zip64={"short": {"start": 63, "length": 98}}),
        archive(member(), packed_member(b"b", b"x"), zip64={"disks": 0}),
        archive(
            member(size=MAX_32, packed=MAX_32, extra=wide(len(TEXT), len(TEXT)), offset=0),
            packed_member(b"b", b"x", size=MAX_32, extra=wide(1)),
        ),
        archive(
            packed_member(b"b", b"x"),
            member(offset=MAX_32, extra=wide(len(deflated(b"x")) + 31)),
        ),
        archive(
            member(flags=8, local_crc=0, local_size=0, local_packed=0),
            packed_member(b"b", b"x", flags=0b1000_0000_1110),
        ),
        archive(
            member(local_size=MAX_32, local_packed=MAX_32, local_extra=wide(len(TEXT), len(TEXT))),
            packed_member(b"b", b"x"),
        ),
    ],
)
def test_a_zip_file_whose_numbers_agree_is_read(data: bytes) -> None:
    assert contents(data) == {"a": TEXT, "b": b"x"}


@pytest.mark.parametrize("method", [ZIP_STORED, ZIP_DEFLATED])
def test_members_of_any_length_are_read_in_pieces(method: int) -> None:
    for size in (0, 1, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1, 2 * CHUNK_BYTES, len(MANY) * 3 + 5):
        content = (MANY * 4)[:size]
        out = io.BytesIO()
        with ZipFile(out, "w", method) as file:
            file.writestr("a", content)
            file.writestr("b", b"after it")
        reader = ZipReader(out)
        pieces = list(reader.read(reader.members[0]))
        assert b"".join(pieces) == content
        assert max(map(len, pieces), default=0) <= CHUNK_BYTES


def test_a_member_has_the_fields_of_its_directory_entry() -> None:
    data = archive(packed_member("ä".encode(), b"x", flags=0x800), before=b"12345")
    (found,) = ZipReader(io.BytesIO(data)).members
    assert found == ("ä", "ä".encode(), 0x800, 8, zlib.crc32(b"x"), len(deflated(b"x")), 1, 5)
    assert ZipReader(io.BytesIO(archive(member(b"x" * MAX_NAME_BYTES)))).members[0].size == len(TEXT)
    assert ZipReader(io.BytesIO(archive(member(b"a\xff")))).members[0].name == "a\ufffd"
    assert ZipReader(io.BytesIO(archive())).members == []


NOT_A_ZIP = "this is not a zip file, or its end is missing"
DAMAGED = "the zip file is damaged: {}"
END = DAMAGED.format("its end record makes no sense")
END64 = DAMAGED.format("its zip64 end record makes no sense")
NO_END64 = DAMAGED.format("its zip64 end record is missing")
MISSING = DAMAGED.format("a part of it is missing")
ENTRY = DAMAGED.format("an entry of its directory makes no sense")
POSITION = DAMAGED.format("its directory is not where its end record says")
LENGTH = DAMAGED.format("its directory does not have the size its end record says")
OVERLAP = DAMAGED.format("a overlaps what follows it")
DIFFERS = DAMAGED.format("a differs from its entry in the directory")
LONGER = DAMAGED.format("a is longer than declared")
SHORTER = DAMAGED.format("a is shorter than declared")
CHECKSUM = DAMAGED.format("a does not match its checksum")
TRAILING = DAMAGED.format("bytes follow the end of a")
FEATURE = "a in the zip file is encrypted or needs a feature that is not read"
METHOD = "a in the zip file is neither stored nor deflated"
GOOD = archive(member(), member(b"b"))
BIG = deflated(MANY)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", NOT_A_ZIP),
        (b"PK\5\6", NOT_A_ZIP),
        (GOOD[:-1], NOT_A_ZIP),
        (GOOD + b"x", END),
        (archive(member(), comment=b"c" * 9, comment_size=8), END),
        (archive(member(), comment=b"c" * 9, comment_size=10), END),
        (archive(member(), disk=1), END),
        (archive(member(), first=1), END),
        (archive(member(), here=2), END),
        (archive(member(), count=2), MISSING),
        (archive(member(), start=1), POSITION),
        (archive(member(), length=1), POSITION),
        (
            archive(count=MAX_MEMBERS + 1, zip64={}),
            "the zip file has 100,001 members, and at most 100,000 are read",
        ),
        (archive(member(), member(b"b"), count=1), LENGTH),
        (archive(member(), zip64={"locator": b"PK\0\0"}), NO_END64),
        (archive(member(), zip64={"locator_disk": 1}), NO_END64),
        (archive(member(), zip64={"disks": 2}), NO_END64),
        (archive(member(), zip64={"at": 1}), NO_END64),
        (archive(count=0xFFFF), MISSING),
        (archive(member(), zip64={"mark": b"PK\0\0"}), END64),
        (archive(member(), zip64={"size": 45}), END64),
        (archive(member(), zip64={"disk": 1}), END64),
        (archive(member(), zip64={"first": 1}), END64),
        (archive(member(), zip64={"here64": 2}), END64),
        (archive(member(signature=b"PK\0\0")), ENTRY),
        (archive(member(disk=1)), ENTRY),
        (archive(member(b"")), "a name in the zip file has 0 bytes, and at most 255 are read"),
        (archive(member(b"x" * 256)), "a name in the zip file has 256 bytes, and at most 255 are read"),
        (archive(member(), member()), DAMAGED.format("a name occurs twice in it")),
        (archive(member(), member(b"b", offset=1)), OVERLAP),
        (archive(member(packed=len(TEXT) + 1, size=len(TEXT) + 1)), OVERLAP),
        (archive(member(offset=1 << 30)), OVERLAP),
        (archive(member(flags=1)), FEATURE),
        (archive(member(flags=0x20)), FEATURE),
        (archive(member(method=12)), METHOD),
        (archive(member(packed=len(TEXT) - 1)), DAMAGED.format("a is stored and has two sizes")),
        (archive(member(local_signature=b"PK\0\0")), DIFFERS),
        (archive(member(local_name=b"b")), DIFFERS),
        (archive(member(local_flags=2)), DIFFERS),
        (archive(member(local_method=8)), DIFFERS),
        (archive(member(local_crc=1)), DIFFERS),
        (archive(member(local_size=1)), DIFFERS),
        (archive(packed_member(local_packed=1)), DIFFERS),
        (archive(member(local_extra=b"x", data=TEXT[:-1], packed=len(TEXT))), OVERLAP),
        (archive(packed_member(size=len(TEXT) - 1)), LONGER),
        (archive(packed_member(size=len(TEXT) + 1)), SHORTER),
        (archive(member(crc=1)), CHECKSUM),
        (archive(packed_member(crc=1)), CHECKSUM),
        (archive(packed_member(data=deflated(TEXT) + b"x")), TRAILING),
        (archive(packed_member(data=deflated(TEXT) + bytes(CHUNK_BYTES))), TRAILING),
        (archive(packed_member(data=deflated(TEXT)[:-1])), DAMAGED.format("a ends too early")),
        (archive(packed_member(data=b"\xff" * 9)), DAMAGED.format("a is not deflated data")),
        (archive(packed_member(content=MANY, data=BIG[: len(BIG) // 2])), DAMAGED.format("a ends too early")),
    ],
)
def test_a_zip_file_whose_numbers_disagree_is_refused_with_a_reason(data: bytes, message: str) -> None:
    with pytest.raises(Invalid) as refused:
        contents(data)
    assert str(refused.value) == message
