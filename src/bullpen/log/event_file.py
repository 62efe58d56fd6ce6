"""`events.jsonl` as it is written: appended to in whole lines, healed at its end before the next."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from ..wire.event_lines import event_lines, read_head, read_line

BLOCK = 64 << 10


def append_events(path: Path, wires: Sequence[bytes]) -> None:
    """Adds events that follow the last one there; what is torn or rotten behind that is cut off first."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "r+b") as file:
        _, end = _last(file)
        file.truncate(end)
        file.seek(end)
        file.write(event_lines(wires))


def last_seq(path: Path) -> int:
    """The number of the last event that is whole; 0 when there is none."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return 0
    with os.fdopen(descriptor, "rb") as file:
        return _last(file)[0]


def _last(file: BinaryIO) -> tuple[int, int]:
    """The number of the last good line and the offset behind it, looked for from the end."""
    begin = end = file.seek(0, os.SEEK_END)
    data = b""
    while begin:
        step = min(BLOCK + len(data), begin)  # doubles: a line may be long
        begin -= step
        file.seek(begin)
        data = file.read(end - begin)
        if found := _last_good(data, whole_from_start=begin == 0):
            return found[0], begin + found[1]
    return 0, 0


def _last_good(data: bytes, whole_from_start: bool) -> tuple[int, int] | None:
    """The last good line that lies whole in `data`; its first line may have begun before it."""
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
