"""A recording as it is read: its events by place, seq and time, whatever became of the file meanwhile.

One pass when it is opened makes an index of a few numbers for each event; from then on nothing is searched
and nothing but what is asked for is in memory.
"""

import os
from array import array
from bisect import bisect_left
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from ..domain.errors import Invalid, NotFound
from ..domain.events import Event, WorkerSpawning
from ..domain.ids import is_safe_id
from ..wire.browser import read_event
from ..wire.event_lines import MAX_LINE, LineHead, read_head, read_line
from ..wire.json import decode
from .recordings import EVENTS, METADATA

MAX_EVENTS = 5_000_000  # of one recording: the index of an event takes about 36 bytes of memory
MAX_METADATA = 4 << 20  # bytes
_BLOCK = 1 << 20  # bytes that are read at once


class MissingEvents(NamedTuple):
    """Events that are not there any more, first and last."""

    first: int
    last: int


class RecordedEvents:
    """The events of one `events.jsonl`, in order. `bad` lines and a `torn` end (in bytes) are left out.

    With `whole`, the first bad line raises Invalid: a hostile file can have hundreds of millions of them.
    """

    def __init__(self, path: Path, *, whole: bool = False) -> None:
        self._whole = whole
        self.seqs = array("Q")
        self.times = array("q")  # milliseconds
        self.bad = 0
        self.torn = 0
        self._types = array("L")
        self._names: dict[str, int] = {}
        self._offsets = array("Q")
        self._sizes = array("L")
        try:
            self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            raise NotFound(f"there is no recording in {path.parent}: it has no {path.name}") from None
        try:
            self._read_index()
        except BaseException:
            self.close()
            raise

    def __len__(self) -> int:
        return len(self.seqs)

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
        self._fd = -1

    def wire(self, place: int) -> bytes:
        """The event at a place, as it goes over the wire."""
        line = os.pread(self._fd, self._sizes[place], self._offsets[place])
        wire = read_line(line)
        if wire is None:
            raise Invalid(f"event {self.seqs[place]} was changed while it was read")
        return wire

    def event(self, place: int) -> Event:
        return read_event(decode(self.wire(place)))

    def type(self, place: int) -> str:
        return list(self._names)[self._types[place]]

    def place_of(self, seq: int) -> int:
        """Where the event of this number is, or the next one that is there."""
        return bisect_left(self.seqs, seq)

    def place_at(self, time: int) -> int:
        """Where the first event of this moment, or after it, is."""
        return bisect_left(self.times, time)

    def of_type(self, name: str, start: int = 0) -> list[int]:
        """The places of all events of a type, from one on."""
        number = self._names.get(name)
        if number is None:
            return []
        return [place for place in range(start, len(self)) if self._types[place] == number]

    def gaps(self, last_seq: int = 0) -> list[MissingEvents]:
        """What is missing between 1 and the last event, or `last_seq` when that is later."""
        found, expected = [], 1
        for seq in chain(self.seqs, [max(last_seq, self.seqs[-1] if self.seqs else 0) + 1]):
            if seq > expected:
                found.append(MissingEvents(expected, seq - 1))
            expected = seq + 1
        return found

    def _read_index(self) -> None:
        """Look at each line once. Only the line itself is in memory, and no line longer than MAX_LINE."""
        begin = end = 0
        while block := os.pread(self._fd, _BLOCK, end):
            newline = block.find(b"\n")
            while newline >= 0:
                line_end = end + newline
                self._add(
                    begin, block[begin - end : newline] if begin >= end else self._line(begin, line_end)
                )
                begin = line_end + 1
                newline = block.find(b"\n", newline + 1)
            end += len(block)
        self.torn = end - begin

    def _line(self, begin: int, end: int) -> bytes:
        return os.pread(self._fd, end - begin, begin) if end - begin <= MAX_LINE else b""

    def _add(self, offset: int, line: bytes) -> None:
        if len(self) + self.bad == MAX_EVENTS:
            raise Invalid(f"a recording has at most {MAX_EVENTS:,} events")
        wire = read_line(line)
        head = read_head(wire) if wire else None
        if head is None or not self._follows(head):
            self.bad += 1
            if self._whole:
                raise Invalid(
                    f"the line behind event {len(self)} is not an event, or one that cannot follow it"
                )
            return
        self.seqs.append(head.seq)
        self.times.append(head.time)
        self._types.append(self._names.setdefault(head.type, len(self._names)))
        self._offsets.append(offset)
        self._sizes.append(len(line))

    def _follows(self, head: LineHead) -> bool:
        return not self.seqs or (head.seq > self.seqs[-1] and head.time >= self.times[-1])


class RecordingDirectory:
    """A directory with a recording: what was said of it, its events, its terminals."""

    def __init__(self, directory: Path, *, whole: bool = False) -> None:
        self.directory = directory
        self.events = RecordedEvents(directory / EVENTS, whole=whole)
        self.metadata = _read_metadata(directory / METADATA)

    def close(self) -> None:
        self.events.close()

    @property
    def missing(self) -> list[MissingEvents]:
        told = self.metadata.get("lastSeq", 0)
        return self.events.gaps(told if isinstance(told, int) else 0)

    def damage(self) -> list[str]:
        """What is not as it was written, in sentences."""
        said = []
        if not self.metadata:
            said.append(f"{METADATA} is missing or cannot be read")
        if self.events.bad:
            said.append(f"damaged lines that were left out: {self.events.bad}")
        if self.events.torn:
            said.append(f"the last line is torn: {self.events.torn} bytes were left out")
        for first, last in self.missing:
            said.append(
                f"events {first} to {last} are missing" if last > first else f"event {first} is missing"
            )
        return said

    def spools(self) -> dict[tuple[str, int], Path]:
        """Where the bytes of each run of a terminal are: beside the events, or in the home around them."""
        found: dict[tuple[str, int], Path] = {}
        roots = [
            (self.directory / "terminals", ""),
            (self.directory.resolve().parent.parent / "spool", "out"),
        ]
        for worker_id in self._workers():
            for root, stream in roots:
                for run in _numbers(root / worker_id):
                    found.setdefault((worker_id, run), root / worker_id / str(run) / stream)
        return dict(sorted(found.items()))

    def _workers(self) -> list[str]:
        """The workers that have a terminal, as far as the events tell."""
        workers: dict[str, None] = {}
        for place in self.events.of_type("worker_spawning"):
            event = self.events.event(place)
            match event.fact:
                case WorkerSpawning(worker_type="terminal") | WorkerSpawning(agent_kind="pty") if (
                    event.worker_id
                ):
                    workers[event.worker_id] = None
        return list(filter(is_safe_id, workers))


def _numbers(directory: Path) -> list[int]:
    try:
        return sorted(int(name) for name in os.listdir(directory) if name.isdecimal())
    except (FileNotFoundError, NotADirectoryError):
        return []


def _read_metadata(path: Path) -> dict[str, Any]:
    try:
        with open(path, "rb") as file:
            data = file.read(MAX_METADATA + 1)
        metadata = decode(data) if len(data) <= MAX_METADATA else {}
    except (OSError, Invalid):
        return {}
    return metadata if isinstance(metadata, dict) else {}
