"""Export and import of sessions: every byte is kept, and a refused import leaves no files."""

import io
import json
import struct
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from bullpen.domain.errors import BullpenError, Conflict, Invalid, NotFound
from bullpen.domain.states import SessionStatus
from bullpen.log.recording_directory import RecordedEvents
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

START_NS = 1_767_225_600_000_000_000  # time of the first byte of the terminal
ENTRY = struct.Struct("!QqHH")
SPOOL = f"terminals/{WORKER}/1"


def two_segments() -> dict[str, bytes]:
    """Return the files of a recording with a terminal whose output is in two segments."""
    files = {name: data for name, data in recording().items() if not name.startswith("terminals")}
    first, second = b"$ echo hello\r\n", b"hello sk-secret\r\n"
    start = len(first)
    return files | {
        f"{SPOOL}/{0:020d}.idx": ENTRY.pack(0, START_NS, 80, 24) + ENTRY.pack(9, START_NS + 10**9, 0, 0),
        f"{SPOOL}/{0:020d}.bin": first,
        f"{SPOOL}/{start:020d}.idx": ENTRY.pack(start, START_NS + 2 * 10**9, 100, 30),
        f"{SPOOL}/{start:020d}.bin": second,
    }


async def import_files(
    local_server: ServerWithoutWeb, files: dict[str, bytes], session_id: str = SESSION
) -> ImportedSession:
    file, unpacked = local_server.home / "in.zip", local_server.home / "unpacked"
    file.write_bytes(zipped(files))
    return await import_recording(local_server.sessions, session_id, file, unpacked)


async def exported(
    local_server: ServerWithoutWeb, format: Format, *secrets: str, worker: str | None = None
) -> bytes:
    session = await local_server.sessions.get(SESSION)
    export = SessionExport(session.snapshot, local_server.sessions.services, Redaction(secrets))
    return b"".join([piece async for piece in export.stream(format, worker)])


def unzipped(data: bytes) -> dict[str, bytes]:
    with ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def canonical(lines: bytes) -> bytes:
    """Return the events as this version encodes them: with every field and without spaces."""
    wires = [read_line(line) for line in lines.splitlines()]
    return b"".join(event_line(encode_event(read_event(decode(wire)))) for wire in wires if wire)


def lines(cast: bytes) -> list[Any]:
    return [json.loads(line) for line in cast.splitlines()]


async def test_an_imported_session_is_exported_again_byte_for_byte(local_server: ServerWithoutWeb) -> None:
    files = two_segments()
    taken = await import_files(local_server, files)
    assert taken == ImportedSession(id=SESSION, session_id=SESSION, title="recorded", workers=1, notes=[])
    out = unzipped(await exported(local_server, "zip"))
    metadata = json.loads(out.pop("metadata.json"))
    exported_metadata = (metadata["id"], metadata["title"], metadata["completed"], metadata["lastSeq"])
    assert exported_metadata == (SESSION, "recorded", True, 5)
    cast = out.pop(f"terminals/{WORKER}.1.cast")
    assert cast == await exported(local_server, "cast")
    files["events.jsonl"] = canonical(files["events.jsonl"])
    assert out == {name: data for name, data in files.items() if name != "metadata.json"}
    assert await exported(local_server, "jsonl") == files["events.jsonl"]


async def test_the_files_of_an_export_are_in_the_order_in_which_a_player_reads_them(
    local_server: ServerWithoutWeb,
) -> None:
    files = two_segments()
    await import_files(local_server, files)
    spool = [name for name in files if name.startswith("terminals")]
    expected = ["metadata.json", "events.jsonl", *spool, f"terminals/{WORKER}.1.cast", IMAGE]
    assert list(unzipped(await exported(local_server, "zip"))) == expected


async def test_a_cast_has_the_output_of_a_terminal_with_its_times(local_server: ServerWithoutWeb) -> None:
    await import_files(local_server, two_segments())
    for worker in (None, WORKER):
        header, *entries = lines(await exported(local_server, "cast", worker=worker))
        assert header["title"] == "recorded · shell"
        assert [entry[2] for entry in entries if entry[1] == "o"] == [
            "$ echo he",
            "llo\r\n",
            "hello sk-secret\r\n",
        ]
    with pytest.raises(NotFound) as refused:
        await exported(local_server, "cast", worker="other")
    assert str(refused.value) == "there is no such terminal in the session; a cast shows a terminal"


async def test_a_terminal_agent_has_a_recording_of_its_terminal_and_an_acp_agent_has_none(
    local_server: ServerWithoutWeb,
) -> None:
    def agent(seq: int, worker: str, kind: str) -> bytes:
        data = {"workerType": "agent", "name": kind, "workspace": "/", "run": 1, "agentKind": kind}
        return event(seq, "worker_spawning", worker, **data)

    other = "7d1f1f0e-3a52-4a0e-9d0b-6a5f1b1d2c03"
    lines_of_agents = events(agent(2, other, "acp"), agent(3, WORKER, "pty"))
    await import_files(
        local_server, two_segments() | {"events.jsonl": lines_of_agents, "metadata.json": metadata(lastSeq=3)}
    )
    assert lines(await exported(local_server, "cast"))[0]["title"] == "x · pty"
    with pytest.raises(NotFound):
        await exported(local_server, "cast", worker=other)
    names = unzipped(await exported(local_server, "zip"))
    assert {name.split("/")[1].split(".")[0] for name in names if name.startswith("terminals")} == {WORKER}


async def test_a_markdown_export_has_every_event_in_order(local_server: ServerWithoutWeb) -> None:
    await import_files(local_server, recording())
    assert (await exported(local_server, "markdown")).decode() == (
        "\n# recorded\n\n2026-01-01T00:00:00.000Z in `/tmp`\n"
        "\n> terminal shell starts\n"
        "\n> shell exited: 0\n"
        "\n> completed (ended by a person), 2026-01-01T00:00:00.000Z\n"
    )


async def test_no_export_format_contains_a_secret(local_server: ServerWithoutWeb) -> None:
    await import_files(local_server, two_segments())
    secrets = (r"sk-\w+", "recorded", "/tmp")
    out = unzipped(await exported(local_server, "zip", *secrets))
    assert IMAGE not in out
    assert json.loads(out["metadata.json"])["title"] == "[redacted]"
    assert out[f"{SPOOL}/{14:020d}.bin"] == b"hello *********\r\n"
    assert out[f"{SPOOL}/{0:020d}.bin"] == two_segments()[f"{SPOOL}/{0:020d}.bin"]
    casts = await exported(local_server, "cast", *secrets)
    assert casts == out[f"terminals/{WORKER}.1.cast"]
    everything = [*out.values(), await exported(local_server, "jsonl", *secrets)]
    everything.append(await exported(local_server, "markdown", *secrets))
    for data in everything:
        assert not any(word in data for word in (b"sk-secret", b"recorded", b"/tmp"))
    first = json.loads(out["events.jsonl"].splitlines()[0])
    assert (first["seq"], first["data"]["locationPath"]) == (1, "[redacted]")
    assert out["events.jsonl"].count(b"\n") == 5


async def test_a_session_that_was_active_is_completed_by_its_import(local_server: ServerWithoutWeb) -> None:
    files = recording()
    first_events = files["events.jsonl"].splitlines(keepends=True)[:3]
    files["events.jsonl"] = b"".join(first_events)
    files["metadata.json"] = json.dumps({"format": 1, "id": SESSION, "lastSeq": 3}).encode()
    taken = await import_files(local_server, files)
    assert taken.notes == ["it was active when it was exported: here it is completed"]
    session = await local_server.sessions.get(SESSION)
    snapshot = session.snapshot
    assert (snapshot.status, snapshot.end_reason, snapshot.live) == (
        SessionStatus.COMPLETED,
        "imported",
        False,
    )
    assert [each.type for each in await local_server.events(session)] == [
        *("session_start", "worker_spawning", "worker_ready", "worker_terminated", "session_end")
    ]
    assert (await exported(local_server, "jsonl")).startswith(canonical(files["events.jsonl"]))
    times = [each.timestamp for each in await local_server.events(session)]
    assert times == sorted(times)
    assert times[-1] > times[0]


def recording_with(**files: Any) -> dict[str, bytes]:
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
    ("files", "error", "message"),
    [
        (
            recording_with(metadata=metadata(id="other")),
            Invalid,
            f"this is not the recording of session {SESSION}",
        ),
        (
            recording_with(metadata=b"{"),
            Invalid,
            "the recording is not complete: metadata.json is missing or cannot be read",
        ),
        (
            recording_with(metadata=metadata(lastSeq=6)),
            Invalid,
            "the recording is not complete: event 6 is missing",
        ),
        (
            recording_with(
                events=events(event(2, "worker_ready", WORKER, pid=1)), metadata=metadata(lastSeq=2)
            ),
            Invalid,
            f"event 2 is not possible: no worker {WORKER} in session {SESSION}",
        ),
        (
            recording_with(events=events(spawning(2, "../up")), metadata=metadata(lastSeq=2)),
            Invalid,
            "a worker cannot be called ../up",
        ),
        (
            recording_with(events=events(spawning(2, "x" * 200)), metadata=metadata(lastSeq=2)),
            Invalid,
            f"a worker cannot be called {'x' * 80}",
        ),
        (
            recording_with(events=events(spawning(2, WORKER, run=3)), metadata=metadata(lastSeq=2)),
            Invalid,
            f"the worker {WORKER} cannot have had 3 runs",
        ),
    ],
)
async def test_an_inconsistent_recording_is_refused_and_leaves_no_files(
    local_server: ServerWithoutWeb, files: dict[str, bytes], error: type[BullpenError], message: str
) -> None:
    with pytest.raises(error) as refused:
        await import_files(local_server, files)
    assert str(refused.value) == message
    with pytest.raises(NotFound):
        await local_server.sessions.get(SESSION)
    assert leftover_files(local_server) == []
    (local_server.home / "unpacked").rename(local_server.home / "old")
    assert (await import_files(local_server, recording())).workers == 1


def leftover_files(local_server: ServerWithoutWeb) -> list[Path]:
    """Return the files that an import has written."""
    directories = (
        local_server.home / "spool",
        local_server.home / "images",
        local_server.home / "recordings",
    )
    return [path for directory in directories for path in directory.rglob("*") if path.is_file()]


async def test_a_worker_may_have_as_many_runs_as_there_are_spawning_events(
    local_server: ServerWithoutWeb,
) -> None:
    exited = event(3, "worker_failed", WORKER, error="x")
    files = recording_with(events=events(spawning(2, WORKER, 2), exited), metadata=metadata(lastSeq=3))
    assert (await import_files(local_server, files)).workers == 1


@pytest.mark.parametrize("session_id", ["../up", "other"])
async def test_a_recording_is_imported_under_its_own_id_only(
    local_server: ServerWithoutWeb, session_id: str
) -> None:
    with pytest.raises(Invalid) as refused:
        await import_files(local_server, recording_with(metadata=metadata(id="../up")), session_id)
    assert str(refused.value) == f"this is not the recording of session {session_id}"


async def test_a_second_import_of_a_session_is_refused_and_changes_nothing(
    local_server: ServerWithoutWeb,
) -> None:
    await import_files(local_server, recording())
    before = await exported(local_server, "zip")
    (local_server.home / "unpacked").rename(local_server.home / "old")
    with pytest.raises(Conflict) as refused:
        await import_files(local_server, recording())
    assert str(refused.value) == f"session {SESSION} is here already"
    assert await exported(local_server, "zip") == before


@pytest.mark.parametrize("with_files", [True, False])
async def test_an_import_that_the_database_refuses_leaves_no_files(
    local_server: ServerWithoutWeb, monkeypatch: pytest.MonkeyPatch, with_files: bool
) -> None:
    files = {name: data for name, data in recording().items() if with_files or "/" not in name}

    def refuse(*_: object) -> None:
        raise Conflict("the database refuses")

    with monkeypatch.context() as patch:
        patch.setattr(importing_recording, "import_appends", refuse)
        with pytest.raises(Conflict, match="the database refuses"):
            await import_files(local_server, files)
    assert leftover_files(local_server) == []
    assert SESSION not in local_server.sessions.imported_ids


async def test_an_imported_session_can_be_read_after_a_restart(closed_server: ServerWithoutWeb) -> None:
    async with closed_server.open():
        await import_files(closed_server, two_segments())
        first = await exported(closed_server, "zip")
    async with closed_server.open():
        session: Session = await closed_server.sessions.get(SESSION)
        assert session.snapshot.title == "recorded"
        assert await exported(closed_server, "zip") == first
        assert [path.read_bytes() for path in closed_server.sessions.services.images.files(SESSION)] == [
            PIXEL
        ]


def recorded_events(directory: Path, *more: bytes) -> RecordingEvents:
    """Write the events to a file and return them as the import reads them."""
    path = directory / "events.jsonl"
    path.write_bytes(events(*more))
    return RecordingEvents(SESSION, RecordedEvents(path))


def test_a_long_recording_is_stored_in_consecutive_transactions(tmp_path: Path) -> None:
    ended = event(2 * MAX_EVENTS + 5, "session_end", status="completed", reason="x")
    errors = [event(seq, "error", message="x") for seq in range(2, 2 * MAX_EVENTS + 5)]
    for extra, sizes in (([ended], [MAX_EVENTS, MAX_EVENTS, 5]), ([], [MAX_EVENTS, MAX_EVENTS, 4, 1])):
        recorded = recorded_events(tmp_path, *errors, *extra)
        appends = list(recorded.transactions())
        assert [len(append.entries) for append in appends] == sizes
        numbers = [entry.event.seq for append in appends for entry in append.entries]
        assert numbers == list(range(1, sum(sizes) + 1))
        edges = [(append.before.last_seq, append.snapshot.last_seq) for append in appends]
        assert [before for before, _ in edges] == [0, *(after for _, after in edges[:-1])]
        assert bool(recorded.notes) is (not extra)
    assert recorded.worker_ids() == []


def test_a_transaction_of_an_import_ends_at_its_size_limit(tmp_path: Path) -> None:
    heavy = [event(seq, "error", message="x" * (MAX_EVENT_BYTES // 2)) for seq in range(2, 7)]
    assert [len(append.entries) for append in recorded_events(tmp_path, *heavy).transactions()] == [
        3,
        2,
        1,
        1,
    ]


def test_a_recording_that_fills_its_transactions_gets_no_empty_one(tmp_path: Path) -> None:
    errors = [event(seq, "error", message="x") for seq in range(2, MAX_EVENTS)]
    ended = event(MAX_EVENTS, "session_end", status="error", reason="x")
    assert [len(append.entries) for append in recorded_events(tmp_path, *errors, ended).transactions()] == [
        MAX_EVENTS
    ]


@pytest.mark.parametrize("count", [3, MAX_EVENTS])
def test_a_recording_whose_snapshot_is_too_large_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    small = [event(seq, "error", message="x") for seq in range(2, count)]
    recorded = recorded_events(tmp_path, *small, event(count, "session_changed", title="x" * 5000))
    assert recorded.worker_ids() == []
    monkeypatch.setattr(importing_recording, "MAX_SNAPSHOT_BYTES", 4096)
    with pytest.raises(Invalid) as refused:
        recorded.worker_ids()
    assert str(refused.value) == f"the snapshot has more than 0 MiB at event {count}"


async def test_a_recording_with_unknown_values_of_enumerated_columns_is_imported_with_the_defaults(
    local_server: ServerWithoutWeb,
) -> None:
    changes = [
        event(1, "session_start", sessionType="strange", locationPath="/tmp", title="x"),
        event(2, "session_changed", title="y", onLastDisconnect="strange"),
        event(3, "session_changed", title="z"),
    ]
    await import_files(local_server, recording_with(events=b"".join(changes), metadata=metadata(lastSeq=3)))
    (session,) = (await local_server.records.list_sessions()).sessions
    assert (session.type, session.on_last_disconnect, session.title) == ("quick", "keep", "z")
