"""Read a recorded session: its events by index, number and time, tolerating damaged files.

Opening reads the file once and builds an index of a few numbers for each event. Later reads need no search
and hold only the requested event in memory.
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
from ..wire.event_lines import MAX_LINE_BYTES, LineHead, read_head, read_line
from ..wire.json import decode
from .recording_store import EVENTS, METADATA

MAX_EVENTS = 5_000_000  # of one recording; the index needs about 36 bytes for each
MAX_METADATA_BYTES = 4 << 20
_BLOCK_BYTES = 1 << 20


class MissingEvents(NamedTuple):
    """A range of missing events: the numbers of the first and the last."""

    first: int
    last: int


class RecordedEvents:
    """The events of a recorded session's `events.jsonl`, in order.

    Damaged lines and a torn end are skipped and counted in `bad_lines` and `torn_bytes`. With `strict`, the
    first damaged line raises Invalid, because a hostile file can have hundreds of millions of them.
    """

    def __init__(self, path: Path, *, strict: bool = False) -> None:
        self._strict = strict
        self.seqs = array("Q")
        self.times = array("q")  # milliseconds
        self.bad_lines = 0
        self.torn_bytes = 0
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

    def wire(self, index: int) -> bytes:
        """Return the event at an index as JSON; raise Invalid if the file was changed after indexing."""
        line = os.pread(self._fd, self._sizes[index], self._offsets[index])
        wire = read_line(line)
        if wire is None:
            raise Invalid(f"event {self.seqs[index]} was changed while it was read")
        return wire

    def event(self, index: int) -> Event:
        """Return the event at an index."""
        return read_event(decode(self.wire(index)))

    def type(self, index: int) -> str:
        """Return the type of the event at an index."""
        return list(self._names)[self._types[index]]

    def index_of_seq(self, seq: int) -> int:
        """Return the index of the event with this number, or of the next one that exists."""
        return bisect_left(self.seqs, seq)

    def index_at_time(self, time: int) -> int:
        """Return the index of the first event at or after a time in milliseconds."""
        return bisect_left(self.times, time)

    def indexes_of_type(self, name: str, start: int = 0) -> list[int]:
        """Return the indexes of all events of a type, beginning at `start`."""
        number = self._names.get(name)
        if number is None:
            return []
        return [index for index in range(start, len(self)) if self._types[index] == number]

    def missing_ranges(self, last_seq: int = 0) -> list[MissingEvents]:
        """Return the ranges of event numbers that are missing up to the last event or `last_seq`."""
        found, expected = [], 1
        for seq in chain(self.seqs, [max(last_seq, self.seqs[-1] if self.seqs else 0) + 1]):
            if seq > expected:
                found.append(MissingEvents(expected, seq - 1))
            expected = seq + 1
        return found

    def _read_index(self) -> None:
        """Build the index of `events.jsonl` in one pass.

        Only one line is in memory, and none longer than MAX_LINE_BYTES.
        """
        begin = end = 0
        while block := os.pread(self._fd, _BLOCK_BYTES, end):
            newline = block.find(b"\n")
            while newline >= 0:
                line_end = end + newline
                self._add(
                    begin, block[begin - end : newline] if begin >= end else self._line(begin, line_end)
                )
                begin = line_end + 1
                newline = block.find(b"\n", newline + 1)
            end += len(block)
        self.torn_bytes = end - begin

    def _line(self, begin: int, end: int) -> bytes:
        """Return the bytes of a line, or nothing if it is too long to be an event."""
        return os.pread(self._fd, end - begin, begin) if end - begin <= MAX_LINE_BYTES else b""

    def _add(self, offset: int, line: bytes) -> None:
        """Add a line to the index. Count an invalid one as damaged; with `strict`, raise Invalid instead."""
        if len(self) + self.bad_lines == MAX_EVENTS:
            raise Invalid(f"a recording has at most {MAX_EVENTS:,} events")
        wire = read_line(line)
        head = read_head(wire) if wire else None
        if head is None or not self._follows(head):
            self.bad_lines += 1
            if self._strict:
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
        """Return whether the event may follow the last one: later number, no earlier time."""
        return not self.seqs or (head.seq > self.seqs[-1] and head.time >= self.times[-1])


class RecordingDirectory:
    """The directory of a recorded session: its metadata, events and terminal output."""

    def __init__(self, directory: Path, *, strict: bool = False) -> None:
        self.directory = directory
        self.events = RecordedEvents(directory / EVENTS, strict=strict)
        self.metadata = _read_metadata(directory / METADATA)

    def close(self) -> None:
        self.events.close()

    @property
    def missing(self) -> list[MissingEvents]:
        """The ranges of events that the metadata or the numbers show to be missing."""
        last_seq = self.metadata.get("lastSeq", 0)
        return self.events.missing_ranges(last_seq if isinstance(last_seq, int) else 0)

    def describe_damage(self) -> list[str]:
        """Return a sentence for each kind of damage found in the recording."""
        damage = []
        if not self.metadata:
            damage.append(f"{METADATA} is missing or cannot be read")
        if self.events.bad_lines:
            damage.append(f"damaged lines that were left out: {self.events.bad_lines}")
        if self.events.torn_bytes:
            damage.append(f"the last line is torn: {self.events.torn_bytes} bytes were left out")
        for first, last in self.missing:
            damage.append(
                f"events {first} to {last} are missing" if last > first else f"event {first} is missing"
            )
        return damage

    def spools(self) -> dict[tuple[str, int], Path]:
        """Return the directory with the output of each run of a terminal, by worker id and run.

        It is beside the events (an export) or in the data directory around them.
        """
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
        """Return the ids of the workers that have a terminal."""
        workers: dict[str, None] = {}
        for index in self.events.indexes_of_type("worker_spawning"):
            event = self.events.event(index)
            match event.fact:
                case WorkerSpawning(worker_type="terminal") | WorkerSpawning(agent_kind="pty") if (
                    event.worker_id
                ):
                    workers[event.worker_id] = None
        return list(filter(is_safe_id, workers))


def _numbers(directory: Path) -> list[int]:
    """Return the numbers that are names in a directory, sorted."""
    try:
        return sorted(int(name) for name in os.listdir(directory) if name.isdecimal())
    except (FileNotFoundError, NotADirectoryError):
        return []


def _read_metadata(path: Path) -> dict[str, Any]:
    """Return the content of `metadata.json`; empty if it is missing or invalid."""
    try:
        with open(path, "rb") as file:
            data = file.read(MAX_METADATA_BYTES + 1)
        metadata = decode(data) if len(data) <= MAX_METADATA_BYTES else {}
    except (OSError, Invalid):
        return {}
    return metadata if isinstance(metadata, dict) else {}
