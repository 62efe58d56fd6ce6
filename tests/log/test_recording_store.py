"""The directory of recordings: event lines and metadata for each session."""

import json
from pathlib import Path

import pytest

from bullpen.domain.events import Error, Event, Fact, SessionEnd, SessionStart
from bullpen.domain.snapshot import Snapshot, fold_all
from bullpen.log.entries import storable_entry
from bullpen.log.event_file import append_events, last_seq
from bullpen.log.recording_store import RecordingStore, metadata_of
from bullpen.wire.browser import encode_event, session_json
from bullpen.wire.event_lines import event_line, event_lines

START = SessionStart(session_type="quick", location_path="/", title="a title")
START_MS = 1_767_225_600_000  # 2026-01-01T00:00:00Z


def wires(*numbers: int) -> list[bytes]:
    return [encode_event(Event(seq, START_MS + seq, Error(message="x" * seq))) for seq in numbers]


def snapshot(*facts: Fact) -> Snapshot:
    events = (Event(seq, START_MS + seq * 1000, fact) for seq, fact in enumerate((START, *facts), 1))
    return fold_all(Snapshot(id="s"), events)


def test_metadata_describe_an_active_and_an_ended_session() -> None:
    active = snapshot(Error(message="x"))
    expected = {
        "format": 1,
        "id": "s",
        "title": "a title",
        "startedAt": "2026-01-01T00:00:01.000Z",
        "completed": False,
        "endedAt": None,
        "lastSeq": 2,
        "session": session_json(active),
    }
    assert metadata_of(active) == expected
    ended = snapshot(Error(message="x"), SessionEnd(status="error", reason="x"))
    changed = {"completed": True, "endedAt": "2026-01-01T00:00:03.000Z", "lastSeq": 3}
    assert metadata_of(ended) == expected | changed | {"session": session_json(ended)}


def test_a_recording_is_written_described_cleared_and_removed(tmp_path: Path) -> None:
    recordings, directory = RecordingStore(tmp_path / "all"), tmp_path / "all" / "s"
    assert (recordings.last_seq("s"), recordings.metadata_seq("s")) == (0, 0)
    recordings.append("s", wires(1, 2))
    recordings.append("s", wires(3))
    assert (directory / "events.jsonl").read_bytes() == event_lines(wires(1, 2, 3))
    assert directory.stat().st_mode & 0o777 == 0o700
    recordings.write_metadata(snapshot(Error(message="x")))
    assert (recordings.last_seq("s"), recordings.metadata_seq("s")) == (3, 2)
    text = (directory / "metadata.json").read_text()
    assert text.endswith("}\n")
    assert json.loads(text) == metadata_of(snapshot(Error(message="x")))
    recordings.clear("s")
    assert list(directory.iterdir()) == []
    recordings.clear("s")
    recordings.append("s", wires(1))
    recordings.remove("s")
    recordings.remove("missing")
    recordings.append("s", wires(2))
    recordings.write_metadata(snapshot())
    assert not directory.exists()
    recordings.append("other", wires(1))
    assert recordings.last_seq("other") == 1
    recordings.allow("s")
    recordings.append("s", wires(1))
    assert recordings.last_seq("s") == 1


@pytest.mark.parametrize("damaged", [b"", b"{", b"[]", b"\xff", b'{"lastSeq":"7"}', b"[" * 100_000])
def test_metadata_that_cannot_be_read_are_ignored(tmp_path: Path, damaged: bytes) -> None:
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "metadata.json").write_bytes(damaged)
    assert RecordingStore(tmp_path).metadata_seq("s") == 0


GOOD = event_lines(wires(1, 2))
TORN = event_line(wires(3)[0])


@pytest.mark.parametrize(
    ("appended", "kept"),
    [
        (b"", 2),
        (TORN[:-1], 2),
        (TORN[:-2] + b"\n", 2),
        (b"\n" * 5, 2),
        (b"x" * 200_000 + b"\n", 2),
        (b"x" * 200_000, 2),
        (TORN, 3),
        (b"damaged\n" + TORN + b"torn", 3),
    ],
)
def test_an_incomplete_end_is_cut_off_before_the_next_event(
    tmp_path: Path, appended: bytes, kept: int
) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(GOOD + appended)
    assert last_seq(path) == kept
    append_events(path, wires(kept + 1))
    whole = GOOD + (appended[: appended.index(TORN) + len(TORN)] if kept == 3 else b"")
    assert path.read_bytes() == whole + event_line(wires(kept + 1)[0])
    assert last_seq(path) == kept + 1


def test_a_file_without_a_valid_line_is_started_again(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    assert last_seq(path) == 0
    for content in (b"", b"x", b"x\ny\n", b"x" * 100_000):
        path.write_bytes(content)
        assert last_seq(path) == 0
        append_events(path, wires(1))
        assert path.read_bytes() == event_lines(wires(1))
    path.unlink()
    append_events(path, wires(1))
    assert path.stat().st_mode & 0o777 == 0o600
    with pytest.raises(OSError, match="symbolic"):
        (tmp_path / "link").symlink_to(path)
        last_seq(tmp_path / "link")
    with pytest.raises(OSError, match="symbolic"):
        append_events(tmp_path / "link", wires(2))


def test_an_event_is_stored_as_it_is_folded() -> None:
    plain = Event(1, START_MS, Error(message="x"), "w", "shell")
    assert storable_entry(plain).event is plain
    assert json.loads(storable_entry(plain).data) == {"message": "x", "detail": None}
    odd = Event(2, START_MS, Error(message="a\ud800\0"), "w", "r\ud800")
    entry = storable_entry(odd)
    assert (entry.event.seq, entry.event.timestamp, entry.event.worker_id) == (2, START_MS, "w")
    assert entry.event.role == "r\ufffd"
    fact = entry.event.fact
    assert isinstance(fact, Error)
    assert json.loads(entry.data) == {"message": fact.message, "detail": None}
    assert "\ud800" not in fact.message
