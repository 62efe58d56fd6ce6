"""Export and import: a session as a file, and the same session on another machine."""

import asyncio
import io
import json
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import httpx
import pytest

from bullpen.log.replay import ReplayPlayer
from bullpen.log.tracks import OutputMoment
from support.commands import Bullpen
from support.server import Server
from support.session_client import SessionClient, define_scripted

PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
    "1f15c4890000000d49444154789c6360000002000001e221bc330000000049454e44ae426082"
)
SECRET = "sk-abcdefghijklmnop0123456789"


@pytest.fixture
async def elsewhere(tmp_path: Path) -> AsyncIterator[Server]:
    """Another machine: an empty home."""
    place = tmp_path / "elsewhere"
    (place / "workspace").mkdir(parents=True)
    this = Server(place / "home", place / "workspace")
    await this.start()
    yield this
    await this.close()


async def worked_session(server: Server, *, end: bool = True) -> tuple[str, str]:
    """A session with a terminal in which something was said."""
    session = await server.new_session(title="work & play")
    worker = await server.new_terminal(session["id"])
    async with server.socket(f"/ws/session/{session['id']}/worker/{worker['id']}?format=json") as ws:
        await ws.send(json.dumps({"type": "input", "data": f"echo wörk $((6*7)); echo {SECRET}; exit\r"}))
        await server.worker_in(session["id"], worker["id"], "exited")
    answer = await server.http.post(f"/api/sessions/{session['id']}/images", content=PIXEL)
    assert answer.status_code == 201, answer.text
    if end:
        await server.call("POST", f"/api/sessions/{session['id']}/complete")
    return session["id"], worker["id"]


async def exported(server: Server, session_id: str, query: str = "") -> bytes:
    answer = await server.http.get(f"/api/sessions/{session_id}/export?{query}")
    assert answer.status_code == 200, answer.text
    return answer.content


async def put(server: Server, session_id: str, data: bytes) -> Any:
    answer = await server.http.put(f"/api/recordings/{session_id}", content=data)
    return answer.status_code, answer.json()


async def test_exported_imported_on_an_empty_home_and_exported_again_it_is_equal(
    server: Server, elsewhere: Server
) -> None:
    session_id, worker_id = await worked_session(server)
    first = await exported(server, session_id)
    status, imported = await put(elsewhere, session_id, first)
    assert (status, imported["left"]) == (201, [])
    assert imported["taken"][0] == {
        "id": session_id,
        "sessionId": session_id,
        "title": "work & play",
        "workers": 1,
        "notes": [],
    }
    assert await exported(elsewhere, session_id) == first
    events = f"/api/sessions/{session_id}/events"
    assert await elsewhere.call("GET", events) == await server.call("GET", events)
    output = f"/api/sessions/{session_id}/workers/{worker_id}/output"
    assert (await elsewhere.http.get(output)).content == (await server.http.get(output)).content
    assert (await put(elsewhere, session_id, first))[0] == 409
    await elsewhere.restart()
    assert await exported(elsewhere, session_id) == first


async def test_a_conversation_is_equal_elsewhere_and_waits_for_nobody_there(
    server: Server, elsewhere: Server
) -> None:
    await define_scripted(server)
    talk = await SessionClient.begin(server)
    await talk.run_turn(
        "[[thought hm]] [[chunk grüße]] [[plan one two]] [[tool]] [[terminal 'echo in a tool']]"
    )
    await talk.prompt("[[permission]]")
    await talk.open_permission()
    await server.call("POST", f"{talk.path}/queue", 201, json={"message": "waits for ever"})
    open_still = await exported(server, talk.id)
    await server.call("POST", f"{talk.path}/complete")
    ended = await exported(server, talk.id)

    assert (await put(elsewhere, talk.id, open_still))[0] == 201
    assert (await elsewhere.call("GET", "/api/inbox"))["items"] == []
    there = await elsewhere.call("GET", talk.path)
    assert (there["status"], there["live"]) == ("completed", False)
    await elsewhere.call("DELETE", f"{talk.path}?purge=true")
    assert (await put(elsewhere, talk.id, ended))[0] == 201
    assert await exported(elsewhere, talk.id) == ended
    await _recorded(elsewhere, talk.id)
    here, there = [(await each.call("GET", talk.path)) for each in (server, elsewhere)]
    assert here["messages"] == there["messages"]


async def _recorded(server: Server, session_id: str) -> None:
    """It has files there as any other session."""
    async with asyncio.timeout(30):
        while not (server.home / "recordings" / session_id / "metadata.json").exists():
            await asyncio.sleep(0.02)


async def test_what_a_server_killed_during_an_import_left_is_removed_by_the_next(server: Server) -> None:
    def left() -> list[Path]:
        return list(server.home.glob(".import-*"))

    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield b"half of a zip"
            await asyncio.sleep(0.01)

    importing = asyncio.ensure_future(server.http.put("/api/recordings/some", content=endless()))
    async with asyncio.timeout(30):
        while not left():
            await asyncio.sleep(0.01)
    await server.kill()
    with pytest.raises(httpx.TransportError):
        await importing
    assert left()
    await server.start()
    assert not left()


async def test_a_session_that_goes_on_is_completed_where_it_is_imported(
    server: Server, elsewhere: Server
) -> None:
    session = await server.new_session(title="goes on")
    await server.new_terminal(session["id"])
    data = await exported(server, session["id"])
    status, imported = await put(elsewhere, session["id"], data)
    assert (status, len(imported["taken"][0]["notes"])) == (201, 1)
    there = await elsewhere.call("GET", f"/api/sessions/{session['id']}")
    assert (there["status"], there["endReason"], there["live"]) == ("completed", "imported", False)
    here, lines = (
        await exported(server, session["id"], "format=jsonl"),
        await exported(elsewhere, session["id"], "format=jsonl"),
    )
    assert lines.startswith(here)


async def test_what_is_no_whole_recording_is_refused_and_leaves_nothing(
    server: Server, elsewhere: Server
) -> None:
    session_id, _ = await worked_session(server)
    data = await exported(server, session_id)
    for broken in (b"", b"nonsense", data[: len(data) // 2], _without_last_event(data), _with(data, "../x")):
        status, said = await put(elsewhere, session_id, broken)
        assert (status, said["error"]) == (400, "invalid"), said
    assert (await put(elsewhere, "4c0f1f0e-3a52-4a0e-9d0b-6a5f1b1d2c01", data))[0] == 400
    assert (await elsewhere.call("GET", "/api/sessions"))["total"] == 0
    assert [path for path in elsewhere.home.iterdir() if path.name.startswith(".import")] == []


def _without_last_event(data: bytes) -> bytes:
    with ZipFile(io.BytesIO(data)) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    files["events.jsonl"] = files["events.jsonl"][: files["events.jsonl"].rfind(b"\n", 0, -1) + 1]
    return _zipped(files)


def _with(data: bytes, name: str) -> bytes:
    with ZipFile(io.BytesIO(data)) as archive:
        return _zipped({each: archive.read(each) for each in archive.namelist()} | {name: b"x"})


def _zipped(files: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with ZipFile(out, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return out.getvalue()


async def test_a_zip_is_a_recording_that_plays(server: Server, tmp_path: Path) -> None:
    session_id, worker_id = await worked_session(server)
    with ZipFile(io.BytesIO(await exported(server, session_id))) as archive:
        archive.extractall(tmp_path / "unpacked")
    player = ReplayPlayer.open(tmp_path / "unpacked")
    said = b"".join(moment.data for moment in player if isinstance(moment, OutputMoment))
    output = await server.http.get(f"/api/sessions/{session_id}/workers/{worker_id}/output")
    assert said == output.content
    assert player.recorded.describe_damage() == []
    player.close()


async def test_redacted_no_format_tells_a_secret(server: Server) -> None:
    session_id, _ = await worked_session(server)
    session = await server.new_session(title=f"the key is {SECRET}")
    for format in ("jsonl", "markdown", "zip"):
        open_, covered = [
            await exported(server, session["id"], f"format={format}&redact={redact}") for redact in ("0", "1")
        ]
        assert SECRET.encode() in _everything(open_)
        assert SECRET.encode() not in _everything(covered)
    for format in ("cast", "zip"):
        open_, covered = [
            await exported(server, session_id, f"format={format}&redact={redact}") for redact in ("0", "1")
        ]
        assert SECRET.encode() in _everything(open_)
        assert SECRET.encode() not in _everything(covered)
        assert b"*" * len(SECRET) in _everything(covered)


def _everything(data: bytes) -> bytes:
    if not data.startswith(b"PK"):
        return data
    with ZipFile(io.BytesIO(data)) as archive:
        return b"".join(archive.read(name) for name in archive.namelist())


async def test_markdown_is_for_a_person(server: Server) -> None:
    session_id, _ = await worked_session(server)
    text = (await exported(server, session_id, "format=markdown")).decode()
    assert text.startswith("\n# work & play\n")
    assert "> terminal Terminal starts" in text
    assert "completed (ended by a person)" in text


async def test_markdown_has_what_the_agent_said_thought_and_did(server: Server) -> None:
    await define_scripted(server)
    talk = await SessionClient.begin(server)
    await talk.run_turn("[[thought hm]] [[chunk grüße]] [[chunk again]] [[plan one two]] [[tool]]")
    text = (await exported(server, talk.id, "format=markdown")).decode()
    _, _, answer = text.partition("## owner asks")
    said = ("## scripted thinks\n\nhm\n", "## scripted says\n\ngrüßeagain\n", "- [ ] one\n- [ ] two\n")
    places = [answer.index(part) for part in (*said, "- **work** completed")]
    assert places == sorted(places)


async def test_asciinema_plays_an_exported_cast(server: Server, tmp_path: Path) -> None:
    session_id, _ = await worked_session(server)
    bullpen = Bullpen(server.environment())
    file = tmp_path / "it.cast"
    done = await bullpen("export", session_id, "--format", "cast", "--output", str(file))
    assert (done.code, done.out) == (0, f"wrote {file}\n"), done.err
    command = ["asciinema", "play", "--speed", "1000", "--idle-time-limit", "0.1", str(file)]
    env = server.environment() | {"TERM": "xterm-256color", "LC_ALL": "C.UTF-8"}
    played = await asyncio.to_thread(
        subprocess.run,
        command,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
        check=True,
    )
    assert "wörk 42" in played.stdout.decode()


async def test_b2_a_session_is_exported_played_and_shared_on_the_command_line(
    server: Server, elsewhere: Server, tmp_path: Path
) -> None:
    session_id, _ = await worked_session(server)
    here, there = Bullpen(server.environment()), Bullpen(elsewhere.environment())
    file = tmp_path / "it.zip"
    assert (await here("export", "work & play", "-o", str(file))).code == 0
    assert (await here("export", "work & play", "-o", str(file))).code == 2  # it is there already
    imported = await there("import", str(file))
    assert (imported.code, imported.out.split(" with ")[0]) == (0, f"imported work & play ({session_id[:8]})")
    again = await there("import", str(file))
    assert (again.code, "is here already" in again.err) == (1, True)
    played = await there("replay", session_id, "--speed", "1000", "--idle", "0.01")
    assert played.code == 0, played.err
    assert "session start" in played.out
    assert "wörk 42" in played.out
    rebuilt = await there("recordings", "rebuild", session_id)
    assert (rebuilt.code, rebuilt.out.startswith("wrote ")) == (0, True)
    place = elsewhere.home / "recordings" / session_id
    checked = await there("recordings", "check", str(place))
    assert (checked.code, checked.out.endswith("no damage\n")) == (0, True)
    (place / "events.jsonl").write_bytes((place / "events.jsonl").read_bytes()[:-5])
    checked = await there("recordings", "check", str(place))
    assert (checked.code, "is torn" in checked.out) == (1, True)
    shared = await there("share", session_id, "--expires", "1h")
    assert f"/#share={session_id}/bpt_" in shared.out


async def test_the_time_line_tells_where_everything_was(server: Server) -> None:
    session_id, worker_id = await worked_session(server)
    line = await server.call("GET", f"/api/sessions/{session_id}/timeline")
    (terminal,) = line["terminals"]
    assert (terminal["workerId"], terminal["run"], terminal["start"]) == (worker_id, 1, 0)
    assert terminal["points"][0][1] == 0 < terminal["end"]
    events = (await server.call("GET", f"/api/sessions/{session_id}/events"))["events"]
    place = f"/api/sessions/{session_id}/timeline?at="
    end = (await server.call("GET", f"{place}{line['ends']}"))["moment"]
    assert end == {
        "seq": len(events),
        "terminals": [{"workerId": worker_id, "run": 1, "offset": terminal["end"]}],
    }
    before = (await server.call("GET", f"{place}{line['begins'] - 1}"))["moment"]
    assert (before["seq"], before["terminals"][0]["offset"]) == (0, 0)
    time, offset = terminal["points"][-1]
    moment = (await server.call("GET", f"{place}{time}"))["moment"]
    assert moment["terminals"][0]["offset"] >= offset
    piece = await server.http.get(
        f"/api/sessions/{session_id}/workers/{worker_id}/output?until={offset}&run=1"
    )
    assert len(piece.content) == offset
