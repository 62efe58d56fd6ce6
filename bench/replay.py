"""Measure the replay of a long session: seeks in a player and over REST, the timing, and the memory.

    .venv/bin/python bench/replay.py [--quick]

The session is written as files and imported by a real server, like one of another machine.
"""

import argparse
import asyncio
import os
import platform
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from statistics import median
from typing import Any
from zipfile import ZIP_STORED, ZipFile

from bullpen.domain.conversation import AgentMessage, ToolCall, UserPrompt
from bullpen.domain.events import Event, SessionEnd, SessionStart, WorkerReady, WorkerSpawning
from bullpen.domain.snapshot import Snapshot, fold_all
from bullpen.keeper.spool import INDEX_ENTRY, SEGMENT_BYTES
from bullpen.log.event_file import append_events
from bullpen.log.recording_store import metadata_of
from bullpen.log.replay import PlaybackPace, ReplayPlayer
from bullpen.wire.browser import encode_event, session_json
from bullpen.wire.json import encode
from harness.report import Results, Row, Target, table, values_table, verdicts
from systems.bullpen import COMMAND, Bullpen

OURS = "Bullpen"
SESSION, AGENT, TERMINAL = "5e55105e-0000-4000-8000-000000000001", "its-agent", "its-terminal"
START = 1_772_000_000_000  # ms
LENGTH = 3_600_000  # ms
SEEKS, PLAYED = 500, 20.0
MEBIBYTE = 1 << 20

ROWS = [
    Row("seek seq", "seek to a seq, worst", "ms", [Target(50)]),
    Row("seek time", "seek to a time, worst", "ms", [Target(50)]),
    Row("rest", "seek to a time over REST, median", "ms", [Target(50)]),
    Row("late", "deviation from the original timing at x1, median", "ms", [Target(20)]),
    Row("memory", "memory after playing everything", "MiB", [Target(64)]),
]
EXPLAINING = [
    Row("open", "opening", "ms"),
    Row("all", "playing everything without waits", "s"),
    Row("rest worst", "seek to a time over REST, worst", "ms"),
    Row("late worst", "deviation from the timing, worst", "ms"),
    Row("moments", "moments played at x1", ""),
]


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the replay of a long session.")
    parser.add_argument(
        "--quick", action="store_true", help="a short session, to check that the benchmark works"
    )
    quick = parser.parse_args().quick
    events, size, seeks, seconds = (2000, MEBIBYTE, 50, 2.0) if quick else (100_000, 50 << 20, SEEKS, PLAYED)
    with tempfile.TemporaryDirectory(prefix="bullpen-bench-") as place:
        recording = Path(place, "recording")
        snapshot = make_recording(recording, events, size)
        results = measure_player(recording, snapshot, seeks, seconds)
        measure_server(results, recording, snapshot, seeks)
    print(f"{platform.platform()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the end")
    print(f"{events:,} events and {size // MEBIBYTE} MiB of terminal in an hour; {seeks} seeks each\n")
    print(values_table([*ROWS, *EXPLAINING], [OURS], results))
    print("\n" + table(["", "target"], [[row.title, verdicts(row, OURS, results)] for row in ROWS]))


# The recording


def make_recording(place: Path, events: int, size: int) -> Snapshot:
    """Write a recording of an hour with an agent's messages and terminal output."""
    place.mkdir()
    snapshot = Snapshot(id=SESSION)
    page: list[Event] = []
    for event in event_stream(events):
        page.append(event)
        if len(page) == 1000 or event.seq == events:
            append_events(place / "events.jsonl", list(map(encode_event, page)))
            snapshot, page = fold_all(snapshot, page), []
    (place / "metadata.json").write_bytes(encode(metadata_of(snapshot)))
    write_terminal(place / "terminals" / TERMINAL / "1", size)
    return snapshot


def event_stream(length: int) -> Iterator[Event]:
    place: dict[str, Any] = {"run": 1, "workspace": "/somewhere"}
    begin = [
        (SessionStart(session_type="quick", location_path="/somewhere", title="a long one"), None),
        (WorkerSpawning(worker_type="terminal", name="Terminal", **place), TERMINAL),
        (WorkerReady(pid=7), TERMINAL),
    ]
    rng = random.Random(1)
    for seq in range(1, length + 1):
        now = START + seq * LENGTH // length
        if seq <= len(begin):
            fact, worker = begin[seq - 1]
        elif seq == length:
            fact, worker = SessionEnd(status="completed", reason="done"), None
        elif seq % 500 == 0:
            fact, worker = UserPrompt(prompt_id=f"p{seq}", text=f"question {seq}"), TERMINAL
        elif seq % 20 == 0:
            call = {"toolCallId": f"c{seq}", "title": f"look at {seq}", "status": "completed"}
            fact, worker = ToolCall(call=call), TERMINAL
        else:
            fact, worker = AgentMessage(text="word " * rng.randrange(1, 40), partial=True), TERMINAL
        yield Event(seq, now, fact, worker, "terminal" if worker else None)


def write_terminal(place: Path, size: int) -> None:
    """Write terminal output as the keeper does: in segments, with an index entry for every 36 ms."""
    place.mkdir(parents=True)
    rng = random.Random(2)
    piece = size // 100_000 or 1
    for start in range(0, size, SEGMENT_BYTES):
        end = min(start + SEGMENT_BYTES, size)
        offsets = range(start, end, piece)
        times = ((START + 10) * 1_000_000 + offset * (LENGTH - 20) * 1_000_000 // size for offset in offsets)
        index = (INDEX_ENTRY.pack(offset, at, 80, 24) for offset, at in zip(offsets, times, strict=True))
        (place / f"{start:020d}.idx").write_bytes(b"".join(index))
        (place / f"{start:020d}.bin").write_bytes(rng.randbytes(end - start))


# The player


def measure_player(recording: Path, snapshot: Snapshot, seeks: int, seconds: float) -> Results:
    results: Results = {}

    def note(row: str, figure: float) -> None:
        results.setdefault(row, {}).setdefault(OURS, []).append(figure)

    base = resident()
    took, player = timed(lambda: ReplayPlayer.open(recording))
    note("open", took)
    rng, last = random.Random(3), snapshot.last_seq
    note("seek seq", max(seek(player, lambda: player.seek_seq(rng.randrange(1, last))) for _ in range(seeks)))
    begins, ends = player.start_time, player.end_time
    note(
        "seek time",
        max(seek(player, lambda: player.seek_time(rng.randrange(begins, ends))) for _ in range(seeks)),
    )
    player.seek_time((begins + ends) // 2)
    late = sorted(asyncio.run(play(player, seconds)))
    note("late", median(late))
    note("late worst", late[-1])
    note("moments", len(late))
    player.reset()
    took, folded = timed(lambda: fold_all(Snapshot(id=SESSION), player.events()))
    note("all", took / 1000)
    note("memory", (resident() - base) / MEBIBYTE)
    if folded != snapshot or player.next() is not None:
        raise RuntimeError("the played events do not fold to the session")
    player.close()
    return results


def seek(player: ReplayPlayer, move: Callable[[], None]) -> float:
    """Return the milliseconds to seek, to read the next moment, and to find the terminal offsets."""

    def seek_and_read() -> None:
        move()
        player.peek()
        player.offsets()

    return timed(seek_and_read)[0]


async def play(player: ReplayPlayer, seconds: float) -> list[float]:
    """Play for some seconds; return the deviation of each moment from its time in milliseconds."""
    deviations: list[float] = []
    began, first = time.monotonic(), player.next_time or 0
    async for moment in player.play(PlaybackPace()):
        deviations.append(abs((time.monotonic() - began) * 1000 - (moment.time - first) / 1_000_000))
        if time.monotonic() - began > seconds:
            break
    return deviations


# The server


def measure_server(results: Results, recording: Path, snapshot: Snapshot, seeks: int) -> None:
    """Import the recording into a real server, and measure seeks over REST."""
    rng = random.Random(4)
    with Bullpen() as system:
        send_recording(system, zipped(recording))
        live = system.call("GET", f"/api/sessions/{SESSION}")
        expected = session_json(snapshot)
        if {name: live[name] for name in expected} != expected:
            raise RuntimeError("the imported session differs from the recorded one")
        path = f"/api/sessions/{SESSION}/timeline?at="
        get = partial(system.call, "GET")
        urls = [f"{path}{START + rng.randrange(LENGTH)}" for _ in range(seeks)]
        figures = [timed(partial(get, url))[0] for url in urls]
    results["rest"] = {OURS: [median(figures)]}
    results["rest worst"] = {OURS: [max(figures)]}


def zipped(recording: Path) -> bytes:
    file = recording.parent / "zip"
    with ZipFile(file, "w", ZIP_STORED) as archive:
        for path in sorted(recording.rglob("*")):
            if path.is_file():
                archive.write(path, path.relative_to(recording))
    return file.read_bytes()


def send_recording(system: Bullpen, data: bytes) -> None:
    connection = HTTPConnection("127.0.0.1", system.port, timeout=600)
    connection.request("PUT", f"/api/recordings/{SESSION}", data, system.headers)
    response = connection.getresponse()
    if response.status != 201:
        raise RuntimeError(f"the recording was refused: {response.read()!r}")
    connection.close()


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Run the function; return its duration in milliseconds and its result."""
    began = time.perf_counter()
    done = work()
    return (time.perf_counter() - began) * 1000, done


def resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    if not Path(COMMAND).exists():
        sys.exit(f"there is no {COMMAND}; run: make setup")
    main()
