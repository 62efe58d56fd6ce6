"""Export a session to a file, and import it on another server."""

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
async def second_server(tmp_path: Path) -> AsyncIterator[Server]:
    """A second server with an empty data directory, as on another machine."""
    directory = tmp_path / "second"
    (directory / "workspace").mkdir(parents=True)
    second = Server(directory / "home", directory / "workspace")
    await second.start()
    yield second
    await second.close()


async def session_with_output(server: Server, *, end: bool = True) -> tuple[str, str]:
    """Return the ids of a new session with output and an image, and of its terminal."""
    session = await server.new_session(title="work & play")
    worker = await server.new_terminal(session["id"])
    async with server.socket(f"/ws/session/{session['id']}/worker/{worker['id']}") as ws:
        await ws.send(json.dumps({"type": "input", "data": f"echo wörk $((6*7)); echo {SECRET}; exit\r"}))
        await server.worker_in(session["id"], worker["id"], "exited")
    answer = await server.http.post(f"/api/sessions/{session['id']}/images", content=PIXEL)
    assert answer.status_code == 201, answer.text
    if end:
        await server.call("POST", f"/api/sessions/{session['id']}/complete")
    return session["id"], worker["id"]


async def export_session(server: Server, session_id: str, query: str = "") -> bytes:
    answer = await server.http.get(f"/api/sessions/{session_id}/export?{query}")
    assert answer.status_code == 200, answer.text
    return answer.content


async def import_recording(server: Server, session_id: str, data: bytes) -> Any:
    answer = await server.http.put(f"/api/recordings/{session_id}", content=data)
    return answer.status_code, answer.json()


async def test_a_session_exported_imported_and_exported_again_is_equal(
    server: Server, second_server: Server
) -> None:
    session_id, worker_id = await session_with_output(server)
    first = await export_session(server, session_id)
    status, imported = await import_recording(second_server, session_id, first)
    assert (status, imported["left"]) == (201, [])
    assert imported["taken"][0] == {
        "id": session_id,
        "sessionId": session_id,
        "title": "work & play",
        "workers": 1,
        "before": False,
        "notes": [],
    }
    assert await export_session(second_server, session_id) == first
    events = f"/api/sessions/{session_id}/events"
    assert await second_server.call("GET", events) == await server.call("GET", events)
    output = f"/api/sessions/{session_id}/workers/{worker_id}/output"
    assert (await second_server.http.get(output)).content == (await server.http.get(output)).content
    assert (await import_recording(second_server, session_id, first))[0] == 409
    await second_server.restart()
    assert await export_session(second_server, session_id) == first


async def test_an_imported_conversation_is_equal_and_waits_for_no_user(
    server: Server, second_server: Server
) -> None:
    await define_scripted(server)
    conversation = await SessionClient.begin(server)
    await conversation.run_turn(
        "[[thought hm]] [[chunk grüße]] [[plan one two]] [[tool]] [[terminal 'echo in a tool']]"
    )
    await conversation.prompt("[[permission]]")
    await conversation.open_permission()
    await server.call("POST", f"{conversation.path}/queue", 201, json={"message": "stays in the queue"})
    unfinished = await export_session(server, conversation.id)
    await server.call("POST", f"{conversation.path}/complete")
    ended = await export_session(server, conversation.id)

    assert (await import_recording(second_server, conversation.id, unfinished))[0] == 201
    assert (await second_server.call("GET", "/api/inbox"))["items"] == []
    there = await second_server.call("GET", conversation.path)
    assert (there["status"], there["live"]) == ("completed", False)
    await second_server.call("DELETE", f"{conversation.path}?purge=true")
    assert (await import_recording(second_server, conversation.id, ended))[0] == 201
    assert await export_session(second_server, conversation.id) == ended
    await _wait_until_recorded(second_server, conversation.id)
    here, there = [(await each.call("GET", conversation.path)) for each in (server, second_server)]
    assert here["messages"] == there["messages"]


async def _wait_until_recorded(server: Server, session_id: str) -> None:
    """Wait until the recorder of the server has written the files of an imported session."""
    async with asyncio.timeout(30):
        while not (server.home / "recordings" / session_id / "metadata.json").exists():
            await asyncio.sleep(0.02)


async def test_files_of_an_import_interrupted_by_a_kill_are_removed_at_the_next_start(server: Server) -> None:
    def import_files() -> list[Path]:
        return list(server.home.glob(".import-*"))

    async def endless_zip() -> AsyncIterator[bytes]:
        while True:
            yield b"half of a zip"
            await asyncio.sleep(0.01)

    importing = asyncio.ensure_future(server.http.put("/api/recordings/some", content=endless_zip()))
    async with asyncio.timeout(30):
        while not import_files():
            await asyncio.sleep(0.01)
    await server.kill()
    with pytest.raises(httpx.TransportError):
        await importing
    assert import_files()
    await server.start()
    assert not import_files()


async def test_an_active_session_is_completed_when_it_is_imported(
    server: Server, second_server: Server
) -> None:
    session = await server.new_session(title="still active")
    await server.new_terminal(session["id"])
    data = await export_session(server, session["id"])
    status, imported = await import_recording(second_server, session["id"], data)
    assert (status, len(imported["taken"][0]["notes"])) == (201, 1)
    there = await second_server.call("GET", f"/api/sessions/{session['id']}")
    assert (there["status"], there["endReason"], there["live"]) == ("completed", "imported", False)
    here, lines = (
        await export_session(server, session["id"], "format=jsonl"),
        await export_session(second_server, session["id"], "format=jsonl"),
    )
    assert lines.startswith(here)


async def test_an_incomplete_recording_is_refused_and_leaves_no_files(
    server: Server, second_server: Server
) -> None:
    session_id, _ = await session_with_output(server)
    data = await export_session(server, session_id)
    for broken in (
        b"",
        b"nonsense",
        data[: len(data) // 2],
        _without_last_event(data),
        _with_member(data, "../x"),
    ):
        status, answer = await import_recording(second_server, session_id, broken)
        assert (status, answer["error"]) == (400, "invalid"), answer
    assert (await import_recording(second_server, "4c0f1f0e-3a52-4a0e-9d0b-6a5f1b1d2c01", data))[0] == 400
    assert (await second_server.call("GET", "/api/sessions"))["total"] == 0
    assert [path for path in second_server.home.iterdir() if path.name.startswith(".import")] == []


def _without_last_event(data: bytes) -> bytes:
    with ZipFile(io.BytesIO(data)) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    files["events.jsonl"] = files["events.jsonl"][: files["events.jsonl"].rfind(b"\n", 0, -1) + 1]
    return _zipped(files)


def _with_member(data: bytes, name: str) -> bytes:
    with ZipFile(io.BytesIO(data)) as archive:
        return _zipped({each: archive.read(each) for each in archive.namelist()} | {name: b"x"})


def _zipped(files: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with ZipFile(out, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return out.getvalue()


async def test_an_exported_zip_is_a_recording_that_can_be_played(server: Server, tmp_path: Path) -> None:
    session_id, worker_id = await session_with_output(server)
    with ZipFile(io.BytesIO(await export_session(server, session_id))) as archive:
        archive.extractall(tmp_path / "unpacked")
    player = ReplayPlayer.open(tmp_path / "unpacked")
    played = b"".join(moment.data for moment in player if isinstance(moment, OutputMoment))
    output = await server.http.get(f"/api/sessions/{session_id}/workers/{worker_id}/output")
    assert played == output.content
    assert player.recorded.describe_damage() == []
    player.close()


async def test_a_redacted_export_contains_no_secret_in_any_format(server: Server) -> None:
    session_id, _ = await session_with_output(server)
    session = await server.new_session(title=f"the key is {SECRET}")
    for format in ("jsonl", "markdown", "zip"):
        plain, redacted = [
            await export_session(server, session["id"], f"format={format}&redact={redact}")
            for redact in ("0", "1")
        ]
        assert SECRET.encode() in _all_bytes(plain)
        assert SECRET.encode() not in _all_bytes(redacted)
    for format in ("cast", "zip"):
        plain, redacted = [
            await export_session(server, session_id, f"format={format}&redact={redact}")
            for redact in ("0", "1")
        ]
        assert SECRET.encode() in _all_bytes(plain)
        assert SECRET.encode() not in _all_bytes(redacted)
        assert b"*" * len(SECRET) in _all_bytes(redacted)


def _all_bytes(data: bytes) -> bytes:
    if not data.startswith(b"PK"):
        return data
    with ZipFile(io.BytesIO(data)) as archive:
        return b"".join(archive.read(name) for name in archive.namelist())


async def test_a_markdown_export_describes_the_session_in_words(server: Server) -> None:
    session_id, _ = await session_with_output(server)
    text = (await export_session(server, session_id, "format=markdown")).decode()
    assert text.startswith("\n# work & play\n")
    assert "> terminal Terminal starts" in text
    assert "completed (ended by a person)" in text


async def test_a_markdown_export_has_the_answers_thoughts_and_actions_of_an_agent(server: Server) -> None:
    await define_scripted(server)
    conversation = await SessionClient.begin(server)
    await conversation.run_turn("[[thought hm]] [[chunk grüße]] [[chunk again]] [[plan one two]] [[tool]]")
    text = (await export_session(server, conversation.id, "format=markdown")).decode()
    _, _, answer = text.partition("## owner asks")
    parts = ("## scripted thinks\n\nhm\n", "## scripted says\n\ngrüßeagain\n", "- [ ] one\n- [ ] two\n")
    positions = [answer.index(part) for part in (*parts, "- **work** completed")]
    assert positions == sorted(positions)


async def test_asciinema_plays_an_exported_cast(server: Server, tmp_path: Path) -> None:
    session_id, _ = await session_with_output(server)
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


async def test_a_session_is_exported_played_and_shared_on_the_command_line(
    server: Server, second_server: Server, tmp_path: Path
) -> None:
    session_id, _ = await session_with_output(server)
    here, there = Bullpen(server.environment()), Bullpen(second_server.environment())
    file = tmp_path / "it.zip"
    assert (await here("export", "work & play", "-o", str(file))).code == 0
    assert (await here("export", "work & play", "-o", str(file))).code == 2  # the file exists already
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
    directory = second_server.home / "recordings" / session_id
    checked = await there("recordings", "check", str(directory))
    assert (checked.code, checked.out.endswith("no damage\n")) == (0, True)
    (directory / "events.jsonl").write_bytes((directory / "events.jsonl").read_bytes()[:-5])
    checked = await there("recordings", "check", str(directory))
    assert (checked.code, "is torn" in checked.out) == (1, True)
    shared = await there("share", session_id, "--expires", "1h")
    assert f"/#share={session_id}/bpt_" in shared.out


async def test_the_timeline_gives_the_position_of_each_terminal_at_a_time(server: Server) -> None:
    session_id, worker_id = await session_with_output(server)
    line = await server.call("GET", f"/api/sessions/{session_id}/timeline")
    (terminal,) = line["terminals"]
    assert (terminal["workerId"], terminal["run"], terminal["start"]) == (worker_id, 1, 0)
    assert terminal["points"][0][1] == 0 < terminal["end"]
    events = (await server.call("GET", f"/api/sessions/{session_id}/events"))["events"]
    path = f"/api/sessions/{session_id}/timeline?at="
    end = (await server.call("GET", f"{path}{line['ends']}"))["moment"]
    assert end == {
        "seq": len(events),
        "terminals": [{"workerId": worker_id, "run": 1, "offset": terminal["end"]}],
    }
    before = (await server.call("GET", f"{path}{line['begins'] - 1}"))["moment"]
    assert (before["seq"], before["terminals"][0]["offset"]) == (0, 0)
    time, offset = terminal["points"][-1]
    moment = (await server.call("GET", f"{path}{time}"))["moment"]
    assert moment["terminals"][0]["offset"] >= offset
    piece = await server.http.get(
        f"/api/sessions/{session_id}/workers/{worker_id}/output?until={offset}&run=1"
    )
    assert len(piece.content) == offset
