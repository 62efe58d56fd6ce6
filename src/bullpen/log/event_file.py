"""Append to `events.jsonl` in whole lines, after cutting off a torn or damaged end."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from ..wire.event_lines import event_lines, read_head, read_line

BLOCK_BYTES = 64 << 10


def append_events(path: Path, wires: Sequence[bytes]) -> None:
    """Append events in JSON to `events.jsonl`, after cutting off torn or damaged lines at its end."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "r+b") as file:
        _, end = _last_intact(file)
        file.truncate(end)
        file.seek(end)
        file.write(event_lines(wires))


def last_seq(path: Path) -> int:
    """Return the number of the last intact event in an `events.jsonl` file, or 0."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return 0
    with os.fdopen(descriptor, "rb") as file:
        return _last_intact(file)[0]


def _last_intact(file: BinaryIO) -> tuple[int, int]:
    """Return the number of the last intact event and the offset after its line, searching from the end."""
    begin = end = file.seek(0, os.SEEK_END)
    data = b""
    while begin:
        step = min(BLOCK_BYTES + len(data), begin)  # the step doubles, because a line may be long
        begin -= step
        file.seek(begin)
        data = file.read(end - begin)
        if found := _last_intact_in(data, whole_from_start=begin == 0):
            return found[0], begin + found[1]
    return 0, 0


def _last_intact_in(data: bytes, whole_from_start: bool) -> tuple[int, int] | None:
    """Return number and end of the last intact line that lies completely in `data`; None if there is none.

    Unless `whole_from_start`, the first line in `data` may be incomplete.
    """
    stop = data.rfind(b"\n")
    while stop >= 0:
        before = data.rfind(b"\n", 0, stop)
        if before < 0 and not whole_from_start:
            return None
        wire = read_line(data[before + 1 : stop])
        head = read_head(wire) if wire else None
        if head:
            return head.seq, stop + 1
        stop = before
    return None
