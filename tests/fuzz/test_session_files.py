"""Damaged files of a session are read as far as they are valid, or refused with a sentence."""

import json
import shutil
import struct
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st

from bullpen.domain.errors import BullpenError
from bullpen.domain.snapshot import Snapshot, fold
from bullpen.keeper.spool import SpoolGone
from bullpen.log.entries import storable_entry
from bullpen.log.event_file import append_events, last_seq
from bullpen.log.export_pieces import cast_lines
from bullpen.log.recording import Recording
from bullpen.log.replay import ReplayPlayer
from bullpen.log.timeline import find_markers, terminal_timeline
from bullpen.store.saved_snapshots import SCHEMA, read_snapshot, saved_row
from bullpen.wire.browser import session_json
from bullpen.wire.event_lines import event_line, read_head, read_line
from bullpen.wire.json import encode
from bullpen.wire.markdown import MarkdownWriter
from bullpen.wire.sessions_json import SavedSession, read_saved, read_time
from bullpen.workers.saved_screens import HEADER, MAGIC, SavedScreens, ScreenPosition
from bullpen.workers.screen import Screen
from support import golden
from support.fuzzing import fuzz, mutated_bytes, mutated_json, replay

CASES = [json.loads(path.read_text()) for path in golden.paths()]
EVENTS = [case["events"] for case in CASES if case["events"]]
ENTRY = struct.Struct("!QqHH")
TIME = 1_767_225_600_000_000_000
OUTPUT = b"$ echo hello\r\nhello\r\n"
SPOOL = {
    f"{0:020d}.idx": ENTRY.pack(0, TIME, 80, 24) + ENTRY.pack(9, TIME + 10**9, 100, 30),
    f"{0:020d}.bin": OUTPUT,
    f"{21:020d}.idx": ENTRY.pack(21, TIME + 10**10, 90, 20) + ENTRY.pack(30, TIME + 10**11, 0, 0),
    f"{21:020d}.bin": OUTPUT,
}


# -- events.jsonl ---------------------------------------------------------------------------------------


def lines(events: Any) -> bytes:
    """Return an `events.jsonl` of these events, which may be invalid; each line has the correct checksum."""
    return b"".join(event_line(encode(event)) for event in events)


def check_events(data: bytes, directory: Path) -> None:
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir()
    (directory / "events.jsonl").write_bytes(data)
    try:
        player = ReplayPlayer.open(directory)
    except BullpenError:
        return
    recorded, snapshot, markdown = player.recorded, Snapshot(id="s"), MarkdownWriter()
    assert all(isinstance(each, str) for each in recorded.describe_damage())
    for number in range(len(recorded.events)):
        event = recorded.events.event(number)
        find_markers([event])
        encode(markdown.feed(event))
        try:
            snapshot = fold(snapshot, storable_entry(event).event)
        except BullpenError:
            continue
        encode(session_json(snapshot))
        assert read_snapshot(SCHEMA, saved_row(snapshot)["body"]) == snapshot
    assert len(list(player)) == len(recorded.events)
    player.seek_time(player.end_time)
    list(player.offsets())
    player.close()
    last = last_seq(directory / "events.jsonl")
    append_events(directory / "events.jsonl", [b'{"seq":%d}' % (last + 1)])


def test_events_that_once_failed_are_read_or_refused(tmp_path: Path) -> None:
    replay("events", lambda data: check_events(data, tmp_path / "recording"))


def test_mutated_events_are_read_or_refused(tmp_path: Path) -> None:
    inputs = mutated_json(EVENTS).map(lambda value: lines(value if isinstance(value, list) else [value]))
    fuzz("events", inputs, lambda data: check_events(data, tmp_path / "recording"), 150)


def test_mutated_bytes_of_an_events_file_are_read_or_refused(tmp_path: Path) -> None:
    inputs = mutated_bytes([lines(events[:4]) for events in EVENTS])
    fuzz("events", inputs, lambda data: check_events(data, tmp_path / "recording"), 100)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["story"][:40])
def test_a_line_of_an_event_is_read_back_as_it_was_written(case: Any) -> None:
    for event in case["events"]:
        wire = read_line(event_line(encode(event))[:-1])
        assert wire is not None
        assert json.loads(wire) == event
        assert read_head(wire) is not None


# -- sessions.json --------------------------------------------------------------------------------------

WORKER = {"id": "w", "type": "agent", "name": "Claude", "pid": 1, "agentId": "claude-code-builtin"}
NOW = 1_800_000_000_000
SAVED = [
    {"id": "a", "type": "quick", "locationPath": "/tmp", "createdAt": "2025-01-01", "workers": [WORKER]},
    {
        "id": "b",
        "type": "worktree",
        "locationPath": "/tmp",
        "createdAt": "",
        "workers": [],
        "worktreeId": "x",
    },
    {"id": "c", "worktreePath": "/tmp", "pid": 1, "createdAt": "2025-01-01", "repositoryId": "default"},
]


def check_saved(data: bytes) -> None:
    try:
        saved = read_saved(json.loads(data))
    except BullpenError:
        return
    assert isinstance(saved, SavedSession)
    for time in (saved.created_at, *(worker.created_at for worker in saved.workers)):
        assert 0 <= read_time(time, NOW) <= NOW


def test_saved_sessions_that_once_failed_are_read_or_refused() -> None:
    replay("sessions_json", check_saved)


def test_mutated_saved_sessions_are_read_or_refused() -> None:
    fuzz("sessions_json", mutated_json(SAVED).map(lambda value: json.dumps(value).encode()), check_saved, 300)


# -- spools ---------------------------------------------------------------------------------------------


def packed(files: dict[str, bytes]) -> bytes:
    """Return the files of a directory as one input of the fuzzer."""
    return json.dumps({name: content.decode("latin-1") for name, content in files.items()}).encode()


@st.composite
def spools(draw: st.DrawFn) -> bytes:
    files = dict(SPOOL)
    for name in draw(st.lists(st.sampled_from(sorted(SPOOL)), max_size=3, unique=True)):
        content = files.pop(name)
        suffix = name[-4:]
        starts = [0, 1, 20, 21, 22, 42, 1 << 32, (1 << 63) - 1, 1 << 63, (1 << 64) - 1, 10**20 - 1]
        new = draw(
            st.sampled_from([name, f"{draw(st.sampled_from(starts)):020d}{suffix}", f"x{suffix}", "7.bin"])
        )
        if draw(st.booleans()):
            files[new] = draw(mutated_bytes([content]))
    return packed(files)


def check_spool(data: bytes, directory: Path) -> None:
    shutil.rmtree(directory, ignore_errors=True)
    (directory / "spool").mkdir(parents=True)
    for name, content in json.loads(data).items():
        (directory / "spool" / name).write_bytes(content.encode("latin-1"))
    recording = Recording(directory / "spool")
    assert 0 <= recording.start <= recording.end < 1 << 63
    for offset in {0, 1, 21, 30, recording.start, recording.end - 1, recording.end, (1 << 63) - 1}:
        with suppress(SpoolGone):
            recording.read(max(0, offset), 100)
        assert all(0 <= each[0] < 1 << 63 for each in recording.window_sizes(max(0, offset)))
    for time in (0, TIME, TIME + 10**9, (1 << 63) - 1):
        assert 0 <= recording.offset_at(time) <= recording.end
    for _, entries in recording.segments():
        list(entries)
    line = terminal_timeline("w", 1, recording)
    encode(line)
    for piece in cast_lines(recording, "title"):
        json.loads(piece)
    screen = Screen(recording, directory / "screens", 80, 24)
    screen.history(recording.end)
    screen.unload()
    recording.close()


def test_spools_that_once_failed_are_read(tmp_path: Path) -> None:
    replay("spool", lambda data: check_spool(data, tmp_path))


def test_mutated_spools_are_read_as_far_as_they_are_valid(tmp_path: Path) -> None:
    fuzz("spool", spools(), lambda data: check_spool(data, tmp_path), 150)


def test_a_whole_spool_is_read_as_it_was_written(tmp_path: Path) -> None:
    for name, content in SPOOL.items():
        (tmp_path / name).write_bytes(content)
    recording = Recording(tmp_path)
    assert recording.read(0, 100) == OUTPUT * 2
    assert list(recording.window_sizes()) == [(0, 80, 24), (9, 100, 30), (21, 90, 20)]
    recording.close()


# -- saved screens and snapshots --------------------------------------------------------------------------


def saved_screen(tmp_path: Path) -> bytes:
    """Return the content of the file that a real screen saved."""
    check_spool(packed(SPOOL), tmp_path)
    [file] = (tmp_path / "screens").glob("*.screen")
    return file.read_bytes()


def check_screen(data: bytes, directory: Path) -> None:
    """Check that the screen shows the recording, whatever its saved file contains; that is only a cache."""
    shutil.rmtree(directory / "saved", ignore_errors=True)
    (directory / "saved").mkdir()
    (directory / "saved" / "42.screen").write_bytes(data)
    list(SavedScreens(directory / "saved").newest_first(42))
    screen = Screen(Recording(directory / "spool"), directory / "saved", 80, 24)
    assert screen.view(42).text.rstrip().endswith("hello")
    screen.unload()


def test_saved_screens_that_once_failed_are_ignored(tmp_path: Path) -> None:
    saved_screen(tmp_path)
    replay("screen", lambda data: check_screen(data, tmp_path))


def test_mutated_saved_screens_are_ignored(tmp_path: Path) -> None:
    whole = saved_screen(tmp_path)
    inputs = mutated_bytes([whole, MAGIC + HEADER.pack(*ScreenPosition(42), 0)])
    fuzz("screen", inputs, lambda data: check_screen(data, tmp_path), 40)


def check_snapshot(data: bytes) -> None:
    snapshot = read_snapshot(SCHEMA, data)
    if snapshot is not None:
        encode(session_json(snapshot))


def test_saved_snapshots_that_once_failed_are_read_or_ignored() -> None:
    replay("snapshot", check_snapshot)


def test_mutated_snapshots_are_read_or_ignored() -> None:
    whole = [saved_row(golden.snapshot_of(case))["body"] for case in CASES]
    inputs = mutated_bytes(whole) | mutated_json([json.loads(body) for body in whole]).map(encode)
    fuzz("snapshot", inputs, check_snapshot, 200)
