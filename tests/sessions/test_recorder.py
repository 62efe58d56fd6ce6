"""R44, R46: a directory for each session with `events.jsonl` and `metadata.json`, written behind its log."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from bullpen.domain.snapshot import Snapshot, fold_all
from bullpen.log.recorded import RecordingDirectory
from bullpen.log.replay import ReplayPlayer
from bullpen.sessions import recorder as recorder_module
from bullpen.sessions.recorder import SessionRecorder
from bullpen.wire.browser import session_json
from support.sample_events import error_draft
from support.server import Server
from support.server_without_web import ServerWithoutWeb


async def recorded_up_to(server: Server, session_id: str, head: int) -> Path:
    """Waits until the metadata tell of all events; they are written last."""
    place = server.home / "recordings" / session_id
    async with asyncio.timeout(30):
        while True:
            try:
                if json.loads((place / "metadata.json").read_text())["lastSeq"] >= head:
                    return place
            except FileNotFoundError:
                pass
            await asyncio.sleep(0.02)


async def events_of(server: Server, session_id: str) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = (await server.call("GET", f"/api/sessions/{session_id}/events"))["events"]
    return events


def lines_of(place: Path) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in (place / "events.jsonl").read_bytes().splitlines()]
    return [{name: value for name, value in line.items() if name != "crc"} for line in lines]


async def ended_session(server: Server) -> dict[str, Any]:
    session = await server.new_session(title="recorded")
    await server.new_terminal(session["id"])
    ended: dict[str, Any] = await server.call("POST", f"/api/sessions/{session['id']}/complete")
    return ended


async def test_a_session_is_recorded_and_its_end_marks_it_completed(server: Server) -> None:
    session = await server.new_session(title="recorded")
    place = await recorded_up_to(server, session["id"], 1)
    metadata = json.loads((place / "metadata.json").read_text())
    assert (metadata["completed"], metadata["endedAt"], metadata["title"]) == (False, None, "recorded")
    ended = await server.call("POST", f"/api/sessions/{session['id']}/complete")
    await recorded_up_to(server, session["id"], ended["lastSeq"])
    metadata = json.loads((place / "metadata.json").read_text())
    assert (metadata["completed"], metadata["session"]["status"]) == (True, "completed")
    assert lines_of(place) == await events_of(server, session["id"])
    assert (place / "events.jsonl").stat().st_mode & 0o777 == 0o600


async def test_what_is_played_adds_up_to_the_live_session(server: Server) -> None:
    session = await ended_session(server)
    place = await recorded_up_to(server, session["id"], session["lastSeq"])
    player = ReplayPlayer.open(place)
    folded = fold_all(Snapshot(id=session["id"]), player.events())
    live = await server.logged_session(session["id"])
    assert session_json(folded) == {name: live[name] for name in session_json(folded)}
    assert player.terminals, "the bytes of its terminal are in the same home"
    player.close()


async def test_after_a_crash_it_goes_on_behind_the_last_whole_line(server: Server) -> None:
    session = await ended_session(server)
    place = await recorded_up_to(server, session["id"], session["lastSeq"])
    whole = (place / "events.jsonl").read_bytes()
    await server.kill()
    (place / "events.jsonl").write_bytes(whole[: whole.rfind(b"\n", 0, -1) - 20])
    (place / "metadata.json").unlink()
    await server.start()
    await recorded_up_to(server, session["id"], session["lastSeq"])
    assert (place / "events.jsonl").read_bytes() == whole


async def test_a_purge_takes_the_recording_along(server: Server) -> None:
    session = await ended_session(server)
    place = await recorded_up_to(server, session["id"], session["lastSeq"])
    await server.call("DELETE", f"/api/sessions/{session['id']}?purge=true")
    assert not place.exists()
    await server.restart()
    assert not place.exists()


async def test_a_damaged_recording_can_be_written_anew(server: Server) -> None:
    session = await ended_session(server)
    place = await recorded_up_to(server, session["id"], session["lastSeq"])
    whole = (place / "events.jsonl").read_bytes()
    (place / "events.jsonl").write_bytes(whole.replace(b"recorded", b"rec0rded"))
    damaged = RecordingDirectory(place)
    assert damaged.describe_damage() == ["damaged lines that were left out: 1", "event 1 is missing"]
    damaged.close()
    rebuilt = await server.call("POST", "/api/recordings/rebuild", 200, json={"sessionId": session["id"]})
    assert rebuilt == {"sessions": 1, "events": session["lastSeq"]}
    assert (place / "events.jsonl").read_bytes() == whole


async def test_a_session_that_goes_on_and_on_is_written_once_a_round(
    house: ServerWithoutWeb, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorder_module, "PAUSE_SECONDS", 3600.0)
    recordings = house.sessions.services.recordings
    written: list[int] = []
    describe = recordings.write_metadata

    def describe_and_note(snapshot: Snapshot) -> None:
        describe(snapshot)
        written.append(snapshot.last_seq)

    monkeypatch.setattr(recordings, "write_metadata", describe_and_note)
    session = await house.session()
    running = asyncio.ensure_future(SessionRecorder(house.sessions, house.records).run())
    async with asyncio.timeout(30):
        while not written:
            await session.log.append([error_draft("on")])
        for _ in range(100):
            await session.log.append([error_draft("and on")])
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert len(written) == 1


async def test_what_is_in_memory_for_a_follower_is_written_as_what_is_stored(house: ServerWithoutWeb) -> None:
    session = await house.session()
    recordings = house.sessions.services.recordings
    await session.log.append([error_draft("before anybody looked")])
    follower = session.log.follow(session.log.head)
    running = asyncio.ensure_future(SessionRecorder(house.sessions, house.records).run())
    async with asyncio.timeout(30):
        for number in range(30):
            await session.log.append([error_draft(f"{number} ☃")])
        while recordings.last_seq(session.id) < session.log.head:
            await asyncio.sleep(0.01)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert follower.after < session.log.head
    stored = [json.loads(wire) for wire in await house.sessions.store.encoded_events(session.id)]
    assert lines_of(recordings.directory / session.id) == stored
