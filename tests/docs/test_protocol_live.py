"""What docs/protocol.md shows is what a real server says: every request, frame and refusal of the page."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from docs.protocol_page import CODE, HOME, PAGE, REPOSITORY, REST, SESSION, SOCKETS, WORKER, Section, examples
from docs.stage import Stage, same_shape
from support.intervals import in_environment
from support.server import Server
from support.session_client import SessionClient


@pytest.fixture
async def server(tmp_path: Path, workspace: Path) -> AsyncIterator[Server]:
    """A server that takes as many agents as the page has requests to them."""
    environment = {"AGENT_MAX_SESSIONS": "0", "AGENT_WORKSPACE_ROOT": "", **in_environment(heartbeat=0.2)}
    this = Server(tmp_path / "home", workspace, environment)
    await this.start()
    await this.call("POST", "/api/roots", 201, json={"path": str(workspace), "force": True})
    yield this
    await this.close()


@pytest.fixture
async def stage(server: Server) -> Stage:
    return await Stage.set_up(server)


async def test_every_request_of_the_page_is_answered_as_it_says(server: Server) -> None:
    of_the_api = [section for section in REST if section.path.startswith("/api/")]
    for number, section in enumerate(of_the_api):
        stage = await Stage.set_up(server, f"stage-{number}")
        answer = await stage.call(section)
        assert answer.status_code == int(section.rule[2]), f"{section.name}: {answer.text}"
        for shown in section.examples("answer"):
            same_shape(shown, answer.json(), section.name)
        for header in re.findall(r"`(X-Bullpen-\w+)`", section.text):
            assert header in answer.headers, section.name


async def test_errors_look_as_the_page_says(server: Server) -> None:
    (shown,) = examples(PAGE, "error")
    answer = await server.http.get(f"/api/sessions/{SESSION}")
    assert answer.status_code == 404
    assert answer.json() == shown


REFUSED: list[tuple[str, str, Any, str]] = [
    ("POST /api/login", "/api/login", {"code": "wrong"}, "401 `unauthorized`"),
    ("DELETE /api/tokens/{id}", f"/api/tokens/{SESSION}", None, "404 `not_found`"),
    ("POST /api/repositories", "/api/repositories", {"path": "/etc"}, "403 `forbidden`"),
    ("POST /api/repositories", "/api/repositories", {"path": f"{HOME}/project/../../.."}, "403 `forbidden`"),
    ("POST /api/repositories", "/api/repositories", {"path": HOME}, "400 `invalid`"),
    ("POST /api/repositories", "/api/repositories", {"path": f"{HOME}/nowhere"}, "404 `not_found`"),
    ("POST /api/repositories", "/api/repositories", {"path": f"{HOME}/project"}, "409 `conflict`"),
    ("PATCH /api/repositories/{id}", f"/api/repositories/{REPOSITORY}", {"name": " "}, "400 `invalid`"),
    ("POST /api/sessions", "/api/sessions", {"locationPath": f"{HOME}/out"}, "403 `forbidden`"),
    ("POST /api/sessions", "/api/sessions", {"locationPath": f"{HOME}/nowhere"}, "404 `not_found`"),
    ("POST /api/sessions", "/api/sessions", {"agentId": "nobody"}, "400 `invalid`"),
    ("POST /api/sessions/{id}/workers", "workers", {"type": "markdown"}, "400 `invalid`"),
    ("POST /api/sessions/{id}/prompt", "prompt", {"text": " "}, "400 `empty_message`"),
    ("POST /api/sessions/{id}/prompt", "prompt", {"text": "x", "role": "nobody"}, "404 `not_found`"),
    ("POST /api/sessions/{id}/prompt", "prompt", {"text": "x", "role": "terminal"}, "409 `conflict`"),
    ("POST /api/sessions/{id}/restart", "restart", None, "404 `not_found`"),
    (
        "POST /api/sessions/{id}/permissions/{pid}",
        "permissions/nobody",
        {"optionId": "x"},
        "404 `not_found`",
    ),
    ("POST /api/sessions/{id}/queue", "queue", {"message": ""}, "400 `empty_message`"),
    ("PUT /api/sessions/{id}/queue/settings", "queue/settings", {"max_size": 0}, "400 `invalid`"),
    ("GET /api/sessions/{id}/queue/{mid}", "queue/nobody", None, "404 `not_found`"),
    (
        "PUT /api/sessions/{id}/workers/{wid}/mode",
        f"workers/{WORKER}/mode",
        {"modeId": "x"},
        "409 `conflict`",
    ),
    ("POST /api/agents", "/api/agents", {"id": "x"}, "400 `invalid`"),
    (
        "POST /api/agents",
        "/api/agents",
        {"id": "demo", "name": "x", "kind": "acp", "command": ["x"]},
        "409 `conflict`",
    ),
    ("DELETE /api/agents/{aid}", "/api/agents/demo", None, "409 `conflict`"),
    ("DELETE /api/agents/{aid}", "/api/agents/nobody", None, "404 `not_found`"),
    (
        "POST /api/sessions/{id}/workers",
        "workers",
        {"type": "terminal", "role": "terminal"},
        "409 `conflict`",
    ),
    ("POST /api/sessions/{id}/workers/{wid}/restart", f"workers/{WORKER}/restart", None, "409 `conflict`"),
    ("DELETE /api/sessions/{id}/workers/{wid}", f"workers/{REPOSITORY}", None, "404 `not_found`"),
    ("GET /api/sessions/{id}/events", "events?after=-1", None, "400 `invalid`"),
]


async def test_what_is_refused_is_refused_as_the_page_says(stage: Stage) -> None:
    Path(stage.real(HOME), "out").symlink_to("/etc")
    for name, place, body, expected in REFUSED:
        method = name.split()[0]
        path = stage.real(place if place.startswith("/") else f"/api/sessions/{SESSION}/{place}")
        answer = await stage.server.http.request(method, path, json=json.loads(stage.real(json.dumps(body))))
        assert f"{answer.status_code} `{answer.json()['error']}`" == expected, f"{name}: {answer.text}"
        said = next(section.text for section in REST if section.name == name)
        assert expected in " ".join(said.split()), f"the page does not say that {name} may answer {expected}"


async def test_a_request_sent_again_under_its_key_is_answered_the_same_and_done_once(stage: Stage) -> None:
    async def send(title: str) -> httpx.Response:
        body = {"locationPath": stage.real(HOME), "title": title}
        return await stage.server.http.post("/api/sessions", json=body, headers={"Idempotency-Key": "k1"})

    first, again, other = await send("once"), await send("once"), await send("twice")
    assert (again.status_code, again.content) == (first.status_code, first.content) == (201, first.content)
    assert (other.status_code, other.json()["error"]) == (409, "conflict")
    assert (await stage.server.call("GET", "/api/sessions?q=once"))["total"] == 1


async def test_a_revoked_token_is_dead_and_its_sockets_are_closed_as_the_page_says(stage: Stage) -> None:
    token = await stage.server.call("POST", "/api/tokens", json={"name": "ci"})
    bearer = {"Authorization": f"Bearer {token['token']}"}
    async with stage.server.socket("/ws/dashboard", headers=bearer) as ws:
        await Seen(ws).until("sessions")
        await stage.server.call("DELETE", f"/api/tokens/{token['id']}", 204)
        with pytest.raises(ConnectionClosed):
            async with asyncio.timeout(30):
                while True:
                    await ws.recv()
        assert ws.close_code == 4401
    assert (await stage.server.http.get("/api/sessions", headers=bearer)).status_code == 401


class Seen:
    """The text frames of a socket, the first of each type; output as JSON or binary counts as output."""

    def __init__(self, ws: ClientConnection) -> None:
        self._ws = ws
        self._first: dict[str, Any] = {}

    async def until(self, *types: str) -> dict[str, Any]:
        async with asyncio.timeout(60):
            while not set(types) <= set(self._first):
                await self._next()
        return self._first

    async def next(self, type: str, **values: Any) -> dict[str, Any]:
        """The next frame of a type with these values in it."""
        async with asyncio.timeout(60):
            while True:
                frame = await self._next()
                if frame["type"] == type and values.items() <= frame.items():
                    return frame

    async def _next(self) -> dict[str, Any]:
        frame: dict[str, Any] = json.loads(await self._ws.recv())
        self._first.setdefault(frame["type"], frame)
        return frame


@asynccontextmanager
async def opened(
    stage: Stage, path: str, query: str = ""
) -> AsyncIterator[tuple[ClientConnection, Seen, Section]]:
    section = SOCKETS[path]
    async with stage.server.socket(stage.path(path) + query) as ws:
        yield ws, Seen(ws), section


def compare(section: Section, seen: dict[str, Any], *types: str) -> None:
    shown = {frame["type"]: frame for frame in section.examples("received")}
    for name in types:
        same_shape(shown[name], seen[name], name)


async def send_all(ws: ClientConnection, section: Section) -> None:
    for frame in section.examples("sent"):
        await ws.send(json.dumps(frame))


OF_EVERY_SESSION = ("events", "snapshot", "ack", "error", "heartbeat")


async def test_the_frames_of_a_session_are_as_the_page_shows_them(stage: Stage) -> None:
    async with opened(stage, "/ws/session/{id}") as (ws, seen, section):
        for frame in section.examples("sent"):
            if frame["type"] in ("subscribe", "prompt"):  # nothing is asked yet that could be answered
                await ws.send(json.dumps(frame))
        await seen.until("events", "ack")
        await ws.send(json.dumps({"type": "subscribe"}))
        await ws.send(json.dumps({"type": "dance", "id": "x1"}))
        compare(section, await seen.until(*OF_EVERY_SESSION), *OF_EVERY_SESSION)
        (error,) = [frame for frame in section.examples("received") if frame["type"] == "error"]
        assert (await seen.until("error"))["error"] == error


async def test_the_orders_of_a_session_are_taken_and_told_of_as_the_page_shows_them(stage: Stage) -> None:
    talk = SessionClient(stage.server, {"id": stage.real(SESSION)})
    async with opened(stage, "/ws/session/{id}") as (ws, seen, section):
        shown = {(frame["type"], frame.get("action")): frame for frame in section.examples("sent")}

        async def order(type: str, action: str | None = None, **real: str) -> dict[str, Any]:
            frame = shown.pop((type, action)) | real
            await ws.send(json.dumps(frame))
            return await seen.next("ack", id=frame["id"])

        await ws.send(json.dumps(shown.pop(("subscribe", None)) | {"notices": True}))
        await ws.send(json.dumps(shown.pop(("looking", None))))  # which is not answered
        await order("prompt", text="ask, question")
        asked = await talk.open_permission()  # what is said now waits until it is answered
        await talk.server.call("POST", f"{talk.path}/queue", 201, json={"message": "first"})
        added = await order("queue", "add")
        await order("queue", "move", messageId=added["messageId"])
        await order("permission", permissionId=asked["id"], optionId=asked["options"][0]["optionId"])
        question = await talk.wait_for_event("question", status="pending")
        await order("question", "decline", questionId=question["data"]["id"])
        notices = {frame["type"] for frame in section.examples("received")} - set(OF_EVERY_SESSION)
        compare(section, await seen.until(*notices), *notices)
        await order("cancel")
        assert shown == {}


async def test_the_frames_of_a_terminal_are_as_the_page_shows_them(stage: Stage) -> None:
    async with opened(stage, "/ws/session/{id}/worker/{wid}", "?format=json&client=page") as (
        ws,
        seen,
        section,
    ):
        await seen.until("history", "size")
        await send_all(ws, section)
        await seen.until("ack", "output")
        # The path of the image ends as a line of its own. Ctrl-U would not always take it back: what a shell
        # was sent before it ran `ls`, the terminal no longer edits.
        await ws.send(json.dumps({"type": "input", "n": 4, "data": "\rexit\r"}))
        await seen.until("exit")
        await ws.send(json.dumps({"type": "input", "n": 5, "data": "too late\r"}))
        types = ("history", "size", "ack", "output", "exit", "error", "heartbeat")
        compare(section, await seen.until(*types), *types)


async def test_binary_output_begins_with_its_offset(stage: Stage) -> None:
    async with opened(stage, "/ws/session/{id}/worker/{wid}", "?after=0") as (ws, _, _section):
        await ws.send(json.dumps({"type": "input", "data": "echo he''llo\r"}))
        said = b""
        async with asyncio.timeout(30):
            while b"hello" not in said:
                frame = await ws.recv()
                if isinstance(frame, bytes):
                    assert int.from_bytes(frame[:8], "big") == len(said)
                    said += frame[8:]


async def test_the_activity_of_an_agent_in_a_terminal_is_told_as_the_page_shows_it(stage: Stage) -> None:
    definition = {"name": "Mine", "kind": "pty", "command": ["cat"]}
    await stage.server.call("PUT", "/api/agents/mine", 200, json=definition)
    workers = stage.path("/api/sessions/{id}/workers")
    worker = await stage.server.call("POST", workers, 201, json={"type": "agent", "agentId": "mine"})
    async with stage.server.socket(stage.path(f"/ws/session/{{id}}/worker/{worker['id']}?format=json")) as ws:
        compare(SOCKETS["/ws/session/{id}/worker/{wid}"], await Seen(ws).until("activity"), "activity")


async def test_the_frames_of_the_dashboard_are_as_the_page_shows_them(stage: Stage) -> None:
    session = stage.path("/api/sessions/{id}")
    async with opened(stage, "/ws/dashboard") as (_, seen, section):
        await seen.next("inbox", items=[])
        await stage.server.call("PATCH", session, json={"title": "another"})
        await seen.until("session")
        await stage.server.call("POST", f"{session}/prompt", json={"text": "ask"})
        full = await seen.next("inbox")
        await stage.server.call("POST", f"{session}/complete")
        await stage.server.call("DELETE", f"{session}?purge=true")
        shown = {frame["type"] for frame in section.examples("received")}
        compare(section, await seen.until(*shown) | {"inbox": full}, *shown)
        assert full["items"]


async def test_the_frames_of_the_relay_are_as_the_page_shows_them(stage: Stage) -> None:
    section = SOCKETS["/ws/relay"]
    async with stage.server.socket("/ws/relay") as ws:
        seen = Seen(ws)
        sent = {frame["type"]: frame for frame in section.examples("sent")}

        async def ask(type: str, answer: str) -> None:
            frame = json.loads(stage.real(json.dumps(sent[type])))
            if type != "session:create":
                frame["sessionId"] = (await seen.until("session:created"))["session:created"]["sessionId"]
            await ws.send(json.dumps(frame))
            await seen.until(answer)

        await ask("session:create", "session:created")
        await ask("agent:spawn", "agent:ready")
        await ask("agent:list", "agent:list")
        await ask("agent:message", "agent:response")
        await ask("agent:spawn", "error")
        await ask("agent:terminate", "agent:terminated")
        await ask("session:terminate", "session:terminated")
        shown = {frame["type"] for frame in section.examples("received")}
        compare(section, await seen.until(*shown), *shown)


async def test_a_login_opens_a_socket_with_the_first_frame_of_the_page(stage: Stage) -> None:
    (shown,) = [frame for frame in examples(PAGE, "sent") if frame["type"] == "auth"]
    async with httpx.AsyncClient(base_url=stage.server.url, trust_env=False) as browser:
        login = await browser.post("/api/login", json={"code": stage.real(CODE)})
    headers = {"Cookie": login.headers["set-cookie"].split(";")[0], "Origin": stage.server.url}
    address = f"ws://127.0.0.1:{stage.server.port}/ws/dashboard"
    async with connect(address, additional_headers=headers, proxy=None) as ws:
        await ws.send(json.dumps(shown | {"secret": login.json()["secret"]}))
        assert (await Seen(ws).until("sessions"))["sessions"]
