"""The recorder writes each session to a directory with `events.jsonl` and `metadata.json`."""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from bullpen.domain.snapshot import Snapshot, fold_all
from bullpen.log.recording_directory import RecordingDirectory
from bullpen.log.replay import ReplayPlayer
from bullpen.sessions import recorder as recorder_module
from bullpen.sessions.recorder import SessionRecorder
from bullpen.wire.browser import session_json
from support.sample_events import error_draft
from support.server import Server
from support.server_without_web import ServerWithoutWeb


async def wait_until_recorded(server: Server, session_id: str, head: int) -> Path:
    """Wait until the metadata, which are written last, include the event `head`. Return the directory."""
    directory = server.home / "recordings" / session_id
    async with asyncio.timeout(30):
        while True:
            try:
                if json.loads((directory / "metadata.json").read_text())["lastSeq"] >= head:
                    return directory
            except FileNotFoundError:
                pass
            await asyncio.sleep(0.02)


async def events_of(server: Server, session_id: str) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = (await server.call("GET", f"/api/sessions/{session_id}/events"))["events"]
    return events


def lines_of(directory: Path) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in (directory / "events.jsonl").read_bytes().splitlines()]
    return [{name: value for name, value in line.items() if name != "crc"} for line in lines]


async def ended_session(server: Server) -> dict[str, Any]:
    session = await server.new_session(title="recorded")
    await server.new_terminal(session["id"])
    ended: dict[str, Any] = await server.call("POST", f"/api/sessions/{session['id']}/complete")
    return ended


async def test_a_session_is_recorded_and_marked_as_completed_when_it_ends(server: Server) -> None:
    session = await server.new_session(title="recorded")
    directory = await wait_until_recorded(server, session["id"], 1)
    metadata = json.loads((directory / "metadata.json").read_text())
    assert (metadata["completed"], metadata["endedAt"], metadata["title"]) == (False, None, "recorded")
    ended = await server.call("POST", f"/api/sessions/{session['id']}/complete")
    await wait_until_recorded(server, session["id"], ended["lastSeq"])
    metadata = json.loads((directory / "metadata.json").read_text())
    assert (metadata["completed"], metadata["session"]["status"]) == (True, "completed")
    assert lines_of(directory) == await events_of(server, session["id"])
    assert (directory / "events.jsonl").stat().st_mode & 0o777 == 0o600


async def test_the_events_of_a_recording_fold_to_the_state_of_the_live_session(server: Server) -> None:
    session = await ended_session(server)
    directory = await wait_until_recorded(server, session["id"], session["lastSeq"])
    player = ReplayPlayer.open(directory)
    folded = fold_all(Snapshot(id=session["id"]), player.events())
    live = await server.logged_session(session["id"])
    assert session_json(folded) == {name: live[name] for name in session_json(folded)}
    assert player.terminals, "the recording of its terminal was not found"
    player.close()


async def test_after_a_crash_the_recorder_continues_after_the_last_complete_line(server: Server) -> None:
    session = await ended_session(server)
    directory = await wait_until_recorded(server, session["id"], session["lastSeq"])
    whole = (directory / "events.jsonl").read_bytes()
    await server.kill()
    (directory / "events.jsonl").write_bytes(whole[: whole.rfind(b"\n", 0, -1) - 20])
    (directory / "metadata.json").unlink()
    await server.start()
    await wait_until_recorded(server, session["id"], session["lastSeq"])
    assert (directory / "events.jsonl").read_bytes() == whole


async def test_a_purge_deletes_the_recording(server: Server) -> None:
    session = await ended_session(server)
    directory = await wait_until_recorded(server, session["id"], session["lastSeq"])
    await server.call("DELETE", f"/api/sessions/{session['id']}?purge=true")
    assert not directory.exists()
    await server.restart()
    assert not directory.exists()


async def test_a_damaged_recording_can_be_rebuilt(server: Server) -> None:
    session = await ended_session(server)
    directory = await wait_until_recorded(server, session["id"], session["lastSeq"])
    whole = (directory / "events.jsonl").read_bytes()
    (directory / "events.jsonl").write_bytes(whole.replace(b"recorded", b"rec0rded"))
    damaged = RecordingDirectory(directory)
    assert damaged.describe_damage() == ["damaged lines that were left out: 1", "event 1 is missing"]
    damaged.close()
    rebuilt = await server.call("POST", "/api/recordings/rebuild", 200, json={"sessionId": session["id"]})
    assert rebuilt == {"sessions": 1, "events": session["lastSeq"]}
    assert (directory / "events.jsonl").read_bytes() == whole


async def test_the_metadata_of_a_busy_session_are_written_once_per_round(
    local_server: ServerWithoutWeb, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorder_module, "PAUSE_SECONDS", 3600.0)
    recordings = local_server.sessions.services.recordings
    written: list[int] = []
    write_metadata = recordings.write_metadata

    def write_and_note(snapshot: Snapshot) -> None:
        write_metadata(snapshot)
        written.append(snapshot.last_seq)

    monkeypatch.setattr(recordings, "write_metadata", write_and_note)
    session = await local_server.session()
    running = asyncio.ensure_future(SessionRecorder(local_server.sessions, local_server.records).run())
    async with asyncio.timeout(30):
        while not written:
            await session.log.append([error_draft("one")])
        for _ in range(100):
            await session.log.append([error_draft("one more")])
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert len(written) == 1


async def test_the_metadata_exist_before_the_first_event_is_written(
    local_server: ServerWithoutWeb, monkeypatch: pytest.MonkeyPatch
) -> None:
    recordings = local_server.sessions.services.recordings
    seen: list[dict[str, Any]] = []
    append = recordings.append

    def note_and_append(session_id: str, wires: Sequence[bytes]) -> None:
        directory = recordings.directory / session_id
        assert not (directory / "events.jsonl").exists()
        seen.append(json.loads((directory / "metadata.json").read_text()))
        append(session_id, wires)

    monkeypatch.setattr(recordings, "append", note_and_append)
    session = await local_server.session()
    await SessionRecorder(local_server.sessions, local_server.records).rebuild([session.id])
    assert [(each["id"], each["lastSeq"], each["completed"]) for each in seen] == [(session.id, 0, False)]
    assert recordings.metadata_seq(session.id) == session.snapshot.last_seq


async def test_events_from_memory_are_recorded_like_events_from_the_database(
    local_server: ServerWithoutWeb,
) -> None:
    session = await local_server.session()
    recordings = local_server.sessions.services.recordings
    await session.log.append([error_draft("before the follower")])
    follower = session.log.follow(session.log.head)
    running = asyncio.ensure_future(SessionRecorder(local_server.sessions, local_server.records).run())
    async with asyncio.timeout(30):
        for number in range(30):
            await session.log.append([error_draft(f"{number} ☃")])
        while recordings.last_seq(session.id) < session.log.head:
            await asyncio.sleep(0.01)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert follower.after < session.log.head
    stored = [json.loads(wire) for wire in await local_server.sessions.store.encoded_events(session.id)]
    assert lines_of(recordings.directory / session.id) == stored
