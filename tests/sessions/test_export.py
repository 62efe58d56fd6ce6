"""Recordings go out and come in inside one process: every byte once, or a refusal that leaves nothing."""

import io
import json
import struct
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from bullpen.domain.errors import BullpenError, Conflict, Invalid, NotFound
from bullpen.domain.states import SessionStatus
from bullpen.log.recorded import RecordedEvents
from bullpen.sessions import importing_recording
from bullpen.sessions.exporting import Format, SessionExport
from bullpen.sessions.importing import ImportedSession
from bullpen.sessions.importing_recording import (
    MAX_EVENT_BYTES,
    MAX_EVENTS,
    RecordingEvents,
    import_recording,
)
from bullpen.sessions.session import Session
from bullpen.wire.browser import encode_event, read_event
from bullpen.wire.event_lines import event_line, read_line
from bullpen.wire.json import decode
from bullpen.wire.redaction import Redaction
from support.server_without_web import ServerWithoutWeb
from web.test_hostile_zips import IMAGE, PIXEL, SESSION, WORKER, event, recording, zipped

TIME = 1_767_225_600_000_000_000  # of the first byte of the terminal
ENTRY = struct.Struct("!QqHH")
SPOOL = f"terminals/{WORKER}/1"


def two_segments() -> dict[str, bytes]:
    """The recording, with a terminal whose output is in two segments."""
    files = {name: data for name, data in recording().items() if not name.startswith("terminals")}
    first, second = b"$ echo hello\r\n", b"hello sk-secret\r\n"
    start = len(first)
    return files | {
        f"{SPOOL}/{0:020d}.idx": ENTRY.pack(0, TIME, 80, 24) + ENTRY.pack(9, TIME + 10**9, 0, 0),
        f"{SPOOL}/{0:020d}.bin": first,
        f"{SPOOL}/{start:020d}.idx": ENTRY.pack(start, TIME + 2 * 10**9, 100, 30),
        f"{SPOOL}/{start:020d}.bin": second,
    }


async def take(
    house: ServerWithoutWeb, files: dict[str, bytes], session_id: str = SESSION
) -> ImportedSession:
    file, room = house.home / "in.zip", house.home / "room"
    file.write_bytes(zipped(files))
    return await import_recording(house.sessions, session_id, file, room)


async def exported(
    house: ServerWithoutWeb, format: Format, *secrets: str, worker: str | None = None
) -> bytes:
    session = await house.sessions.get(SESSION)
    export = SessionExport(session.snapshot, house.sessions.services, Redaction(secrets))
    return b"".join([piece async for piece in export.stream(format, worker)])


def unzipped(data: bytes) -> dict[str, bytes]:
    with ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def canonical(lines: bytes) -> bytes:
    """The same events as this version writes them: with every field, and without blanks."""
    wires = [read_line(line) for line in lines.splitlines()]
    return b"".join(event_line(encode_event(read_event(decode(wire)))) for wire in wires if wire)


def lines(cast: bytes) -> list[Any]:
    return [json.loads(line) for line in cast.splitlines()]


async def test_what_is_imported_is_exported_again_byte_for_byte(house: ServerWithoutWeb) -> None:
    files = two_segments()
    taken = await take(house, files)
    assert taken == ImportedSession(id=SESSION, session_id=SESSION, title="recorded", workers=1, notes=[])
    out = unzipped(await exported(house, "zip"))
    metadata = json.loads(out.pop("metadata.json"))
    told = (metadata["id"], metadata["title"], metadata["completed"], metadata["lastSeq"])
    assert told == (SESSION, "recorded", True, 5)
    cast = out.pop(f"terminals/{WORKER}.1.cast")
    assert cast == await exported(house, "cast")
    files["events.jsonl"] = canonical(files["events.jsonl"])
    assert out == {name: data for name, data in files.items() if name != "metadata.json"}
    assert await exported(house, "jsonl") == files["events.jsonl"]


async def test_an_export_names_its_files_in_the_order_a_player_needs_them(house: ServerWithoutWeb) -> None:
    files = two_segments()
    await take(house, files)
    spool = [name for name in files if name.startswith("terminals")]
    expected = ["metadata.json", "events.jsonl", *spool, f"terminals/{WORKER}.1.cast", IMAGE]
    assert list(unzipped(await exported(house, "zip"))) == expected


async def test_a_cast_is_the_output_of_a_terminal_at_its_times(house: ServerWithoutWeb) -> None:
    await take(house, two_segments())
    for worker in (None, WORKER):
        head, *said = lines(await exported(house, "cast", worker=worker))
        assert head["title"] == "recorded · shell"
        assert [each[2] for each in said if each[1] == "o"] == ["$ echo he", "llo\r\n", "hello sk-secret\r\n"]
    with pytest.raises(NotFound) as refused:
        await exported(house, "cast", worker="other")
    assert str(refused.value) == "there is no such terminal in the session; a cast shows a terminal"


async def test_an_agent_in_a_terminal_has_a_recording_and_any_other_has_none(house: ServerWithoutWeb) -> None:
    def agent(seq: int, worker: str, kind: str) -> bytes:
        about = {"workerType": "agent", "name": kind, "workspace": "/", "run": 1, "agentKind": kind}
        return event(seq, "worker_spawning", worker, **about)

    other = "7d1f1f0e-3a52-4a0e-9d0b-6a5f1b1d2c03"
    told = events(agent(2, other, "acp"), agent(3, WORKER, "pty"))
    await take(house, two_segments() | {"events.jsonl": told, "metadata.json": metadata(lastSeq=3)})
    assert lines(await exported(house, "cast"))[0]["title"] == "x · pty"
    with pytest.raises(NotFound):
        await exported(house, "cast", worker=other)
    names = unzipped(await exported(house, "zip"))
    assert {name.split("/")[1].split(".")[0] for name in names if name.startswith("terminals")} == {WORKER}


async def test_markdown_has_every_paragraph_in_order(house: ServerWithoutWeb) -> None:
    await take(house, recording())
    assert (await exported(house, "markdown")).decode() == (
        "\n# recorded\n\n2026-01-01T00:00:00.000Z in `/tmp`\n"
        "\n> terminal shell starts\n"
        "\n> shell exited: 0\n"
        "\n> completed (ended by a person), 2026-01-01T00:00:00.000Z\n"
    )


async def test_no_format_tells_a_secret(house: ServerWithoutWeb) -> None:
    await take(house, two_segments())
    secrets = (r"sk-\w+", "recorded", "/tmp")
    out = unzipped(await exported(house, "zip", *secrets))
    assert IMAGE not in out
    assert json.loads(out["metadata.json"])["title"] == "[redacted]"
    assert out[f"{SPOOL}/{14:020d}.bin"] == b"hello *********\r\n"
    assert out[f"{SPOOL}/{0:020d}.bin"] == two_segments()[f"{SPOOL}/{0:020d}.bin"]
    casts = await exported(house, "cast", *secrets)
    assert casts == out[f"terminals/{WORKER}.1.cast"]
    everything = [*out.values(), await exported(house, "jsonl", *secrets)]
    everything.append(await exported(house, "markdown", *secrets))
    for data in everything:
        assert not any(word in data for word in (b"sk-secret", b"recorded", b"/tmp"))
    first = json.loads(out["events.jsonl"].splitlines()[0])
    assert (first["seq"], first["data"]["locationPath"]) == (1, "[redacted]")
    assert out["events.jsonl"].count(b"\n") == 5


async def test_a_session_that_went_on_is_completed_by_its_import(house: ServerWithoutWeb) -> None:
    files = recording()
    goes_on = files["events.jsonl"].splitlines(keepends=True)[:3]
    files["events.jsonl"] = b"".join(goes_on)
    files["metadata.json"] = json.dumps({"format": 1, "id": SESSION, "lastSeq": 3}).encode()
    taken = await take(house, files)
    assert taken.notes == ["it was active when it was exported: here it is completed"]
    session = await house.sessions.get(SESSION)
    snapshot = session.snapshot
    assert (snapshot.status, snapshot.end_reason, snapshot.live) == (
        SessionStatus.COMPLETED,
        "imported",
        False,
    )
    assert [each.type for each in await house.events(session)] == [
        *("session_start", "worker_spawning", "worker_ready", "worker_terminated", "session_end")
    ]
    assert (await exported(house, "jsonl")).startswith(canonical(files["events.jsonl"]))
    times = [each.timestamp for each in await house.events(session)]
    assert times == sorted(times)
    assert times[-1] > times[0]


def changed(**files: Any) -> dict[str, bytes]:
    names = {"metadata": "metadata.json", "events": "events.jsonl"}
    return recording() | {names[name]: data for name, data in files.items()}


def metadata(**more: Any) -> bytes:
    return json.dumps({"format": 1, "id": SESSION, "lastSeq": 5} | more).encode()


def events(*more: bytes) -> bytes:
    start = event(1, "session_start", sessionType="quick", locationPath="/tmp", title="x")
    return b"".join([start, *more])


def spawning(seq: int, worker: str, run: int = 1) -> bytes:
    return event(seq, "worker_spawning", worker, workerType="terminal", name="x", workspace="/", run=run)


@pytest.mark.parametrize(
    ("files", "error", "sentence"),
    [
        (
            changed(metadata=metadata(id="other")),
            Invalid,
            f"this is not the recording of session {SESSION}",
        ),
        (
            changed(metadata=b"{"),
            Invalid,
            "the recording is not complete: metadata.json is missing or cannot be read",
        ),
        (changed(metadata=metadata(lastSeq=6)), Invalid, "the recording is not complete: event 6 is missing"),
        (
            changed(events=events(event(2, "worker_ready", WORKER, pid=1)), metadata=metadata(lastSeq=2)),
            Invalid,
            f"event 2 is not possible: no worker {WORKER} in session {SESSION}",
        ),
        (
            changed(events=events(spawning(2, "../up")), metadata=metadata(lastSeq=2)),
            Invalid,
            "a worker cannot be called ../up",
        ),
        (
            changed(events=events(spawning(2, "x" * 200)), metadata=metadata(lastSeq=2)),
            Invalid,
            f"a worker cannot be called {'x' * 80}",
        ),
        (
            changed(events=events(spawning(2, WORKER, run=3)), metadata=metadata(lastSeq=2)),
            Invalid,
            f"the worker {WORKER} cannot have had 3 runs",
        ),
    ],
)
async def test_a_recording_that_makes_no_sense_is_refused_and_leaves_nothing(
    house: ServerWithoutWeb, files: dict[str, bytes], error: type[BullpenError], sentence: str
) -> None:
    with pytest.raises(error) as refused:
        await take(house, files)
    assert str(refused.value) == sentence
    with pytest.raises(NotFound):
        await house.sessions.get(SESSION)
    assert left(house) == []
    (house.home / "room").rename(house.home / "old")
    assert (await take(house, recording())).workers == 1


def left(house: ServerWithoutWeb) -> list[Path]:
    """The files that an import could leave behind."""
    places = (house.home / "spool", house.home / "images", house.home / "recordings")
    return [path for place in places for path in place.rglob("*") if path.is_file()]


async def test_a_worker_may_have_as_many_runs_as_events_started_them(house: ServerWithoutWeb) -> None:
    exited = event(3, "worker_failed", WORKER, error="x")
    files = changed(events=events(spawning(2, WORKER, 2), exited), metadata=metadata(lastSeq=3))
    assert (await take(house, files)).workers == 1


@pytest.mark.parametrize("session_id", ["../up", "other"])
async def test_a_recording_is_only_imported_under_its_own_safe_id(
    house: ServerWithoutWeb, session_id: str
) -> None:
    with pytest.raises(Invalid) as refused:
        await take(house, changed(metadata=metadata(id="../up")), session_id)
    assert str(refused.value) == f"this is not the recording of session {session_id}"


async def test_the_same_session_is_imported_once_and_stays_as_it_is(house: ServerWithoutWeb) -> None:
    await take(house, recording())
    before = await exported(house, "zip")
    (house.home / "room").rename(house.home / "old")
    with pytest.raises(Conflict) as refused:
        await take(house, recording())
    assert str(refused.value) == f"session {SESSION} is here already"
    assert await exported(house, "zip") == before


@pytest.mark.parametrize("with_files", [True, False])
async def test_an_import_that_the_database_refuses_leaves_nothing(
    house: ServerWithoutWeb, monkeypatch: pytest.MonkeyPatch, with_files: bool
) -> None:
    files = {name: data for name, data in recording().items() if with_files or "/" not in name}

    def refuse(*_: object) -> None:
        raise Conflict("the database refuses")

    with monkeypatch.context() as patch:
        patch.setattr(importing_recording, "import_appends", refuse)
        with pytest.raises(Conflict, match="the database refuses"):
            await take(house, files)
    assert left(house) == []
    assert SESSION not in house.sessions.imported_ids


async def test_an_imported_session_can_be_read_after_it_was_opened_again(
    closed_house: ServerWithoutWeb,
) -> None:
    async with closed_house.open():
        await take(closed_house, two_segments())
        first = await exported(closed_house, "zip")
    async with closed_house.open():
        session: Session = await closed_house.sessions.get(SESSION)
        assert session.snapshot.title == "recorded"
        assert await exported(closed_house, "zip") == first
        assert [path.read_bytes() for path in closed_house.sessions.services.images.files(SESSION)] == [PIXEL]


def story(directory: Path, *more: bytes) -> RecordingEvents:
    path = directory / "events.jsonl"
    path.write_bytes(events(*more))
    return RecordingEvents(SESSION, RecordedEvents(path))


def test_a_long_recording_is_stored_in_steps_that_follow_each_other(tmp_path: Path) -> None:
    ended = event(2 * MAX_EVENTS + 5, "session_end", status="completed", reason="x")
    errors = [event(seq, "error", message="x") for seq in range(2, 2 * MAX_EVENTS + 5)]
    for extra, sizes in (([ended], [MAX_EVENTS, MAX_EVENTS, 5]), ([], [MAX_EVENTS, MAX_EVENTS, 4, 1])):
        told = story(tmp_path, *errors, *extra)
        appends = list(told.transactions())
        assert [len(append.entries) for append in appends] == sizes
        numbers = [entry.event.seq for append in appends for entry in append.entries]
        assert numbers == list(range(1, sum(sizes) + 1))
        edges = [(append.before.last_seq, append.snapshot.last_seq) for append in appends]
        assert [before for before, _ in edges] == [0, *(after for _, after in edges[:-1])]
        assert bool(told.notes) is (not extra)
    assert told.worker_ids() == []


def test_a_step_ends_when_it_is_heavy(tmp_path: Path) -> None:
    heavy = [event(seq, "error", message="x" * (MAX_EVENT_BYTES // 2)) for seq in range(2, 7)]
    assert [len(append.entries) for append in story(tmp_path, *heavy).transactions()] == [3, 2, 1, 1]


def test_a_recording_of_whole_steps_has_no_empty_one(tmp_path: Path) -> None:
    errors = [event(seq, "error", message="x") for seq in range(2, MAX_EVENTS)]
    ended = event(MAX_EVENTS, "session_end", status="error", reason="x")
    assert [len(append.entries) for append in story(tmp_path, *errors, ended).transactions()] == [MAX_EVENTS]


@pytest.mark.parametrize("count", [3, MAX_EVENTS])
def test_a_session_that_would_take_too_much_memory_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    small = [event(seq, "error", message="x") for seq in range(2, count)]
    told = story(tmp_path, *small, event(count, "session_changed", title="x" * 5000))
    assert told.worker_ids() == []
    monkeypatch.setattr(importing_recording, "MAX_SNAPSHOT_BYTES", 4096)
    with pytest.raises(Invalid) as refused:
        told.worker_ids()
    assert str(refused.value) == f"the snapshot has more than 0 MiB at event {count}"
