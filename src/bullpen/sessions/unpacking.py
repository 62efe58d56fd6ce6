"""Unpack the zip file of an exported session: only files that a recording has, each within its limit."""

import os
import re
from collections.abc import Sequence
from itertools import groupby, pairwise
from pathlib import Path

from ..domain.errors import BullpenError, Invalid
from ..log.recording_directory import MAX_METADATA_BYTES
from ..log.recording_store import EVENTS, METADATA
from ..log.zip_reader import ZipMember, ZipReader
from ..workers.images import MAX_IMAGE_BYTES, check_name

MAX_BYTES = 8 << 30  # of all files, unpacked
# Bytes of the indexes of all terminals; readers hold a few numbers in memory for each entry.
MAX_INDEX = 256 << 20
MAX_OFFSET = 1 << 53  # of a byte in a terminal's output: larger numbers are not exact in JavaScript

_IMAGE = re.compile(r"images/([0-9a-f]{32}\.[a-z]{3,4})")
_SPOOL = re.compile(r"(terminals/[0-9A-Za-z_-]{1,64}/[1-9][0-9]{0,8})/([0-9]{20})\.(bin|idx)")
_CAST = re.compile(r"terminals/[^/]+\.cast")  # can be made again from the other files


def unpack_recording(file: Path, directory: Path) -> None:
    """Unpack the recording into a new directory; raise Invalid if it is damaged or too large."""
    with open(file, "rb") as source:
        archive = ZipReader(source)
        members = [member for member in archive.members if not _CAST.fullmatch(member.name)]
        _check(members)
        for member in members:
            _unpack(archive, member, directory)


def _check(members: Sequence[ZipMember]) -> None:
    """Raise Invalid by names and declared sizes of the members; `ZipReader.read` checks the real sizes."""
    if EVENTS not in {member.name for member in members}:
        raise Invalid(f"this is not a recording: there is no {EVENTS} in it")
    for member in members:
        _check_one(member)
    if sum(member.size for member in members) > MAX_BYTES:
        raise Invalid(f"a recording has at most {MAX_BYTES >> 30} GiB")
    if sum(member.size for member in members if member.name.endswith(".idx")) > MAX_INDEX:
        raise Invalid(f"the indexes of a recording have at most {MAX_INDEX >> 20} MiB")
    _check_segments(members)


def _check_one(member: ZipMember) -> None:
    """Raise Invalid if the member is no file of a recording, or is too large."""
    if member.name == METADATA and member.size > MAX_METADATA_BYTES:
        raise Invalid(f"{METADATA} has at most {MAX_METADATA_BYTES >> 20} MiB")
    if _IMAGE.fullmatch(member.name) and member.size > MAX_IMAGE_BYTES:
        raise Invalid(f"{member.name} is too large: an image has at most {MAX_IMAGE_BYTES >> 20} MiB")
    if member.name not in (METADATA, EVENTS) and not (
        _IMAGE.fullmatch(member.name) or _SPOOL.fullmatch(member.name)
    ):
        raise Invalid(f"a recording has no file {member.name[:80]!r}")


def _check_segments(members: Sequence[ZipMember]) -> None:
    """Raise Invalid if segments of one terminal overlap, or end beyond MAX_OFFSET."""
    segments = []
    for member in members:
        if (match := _SPOOL.fullmatch(member.name)) and match[3] == "bin":
            segments.append((match[1], int(match[2]), int(match[2]) + member.size))
    for place, ranges in groupby(sorted(segments), key=lambda segment: segment[0]):
        for (_, _, end), (_, start, _) in pairwise([*ranges, (place, MAX_OFFSET, 0)]):
            if end > start:
                raise Invalid(f"the segments of {place} overlap, or their offsets are too large")


def _unpack(archive: ZipReader, member: ZipMember, directory: Path) -> None:
    """Write a member to the directory; raise Invalid if it should be an image and is none."""
    target = directory / member.name
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with open(target, "xb", opener=_open_private) as out:
        for piece in archive.read(member):
            out.write(piece)
    if image := _IMAGE.fullmatch(member.name):
        try:
            check_name(image[1], target.read_bytes())
        except BullpenError as error:
            raise Invalid(f"{member.name} cannot be imported: {error}") from None


def _open_private(path: str, flags: int) -> int:
    """Open a file with mode 0600, without following links; for `open(opener=...)`."""
    return os.open(path, flags | os.O_NOFOLLOW, 0o600)
