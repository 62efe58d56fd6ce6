"""Every request, frame and refusal of docs/protocol.md is checked with a real server."""

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

from docs.example_server import ExampleServer, check_same_shape
from docs.protocol_page import CODE, HOME, PAGE, REPOSITORY, REST, SESSION, SOCKETS, WORKER, Section, examples
from support.intervals import in_environment
from support.server import Server
from support.session_client import SessionClient


@pytest.fixture
async def server(tmp_path: Path, workspace: Path) -> AsyncIterator[Server]:
    """Return a server without a limit of agents, because each request of the page gets its own."""
    environment = {"AGENT_MAX_SESSIONS": "0", "AGENT_WORKSPACE_ROOT": "", **in_environment(heartbeat=0.2)}
    this = Server(tmp_path / "home", workspace, environment)
    await this.start()
    await this.call("POST", "/api/roots", 201, json={"path": str(workspace), "force": True})
    yield this
    await this.close()


@pytest.fixture
async def example_server(server: Server) -> ExampleServer:
    return await ExampleServer.set_up(server)


@pytest.mark.long
async def test_every_request_of_the_page_gets_the_response_of_the_page(server: Server) -> None:
    sections = [section for section in REST if section.path.startswith("/api/")]
    for number, section in enumerate(sections):
        example_server = await ExampleServer.set_up(server, f"examples-{number}")
        answer = await example_server.send_request(section)
        assert answer.status_code == int(section.rule[2]), f"{section.name}: {answer.text}"
        for shown in section.examples("answer"):
            check_same_shape(shown, answer.json(), section.name)
        for header in re.findall(r"`(X-Bullpen-\w+)`", section.text):
            assert header in answer.headers, section.name


async def test_errors_have_the_form_of_the_page(server: Server) -> None:
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
    ("POST /api/sessions", "/api/sessions", {"agentId": "missing"}, "400 `invalid`"),
    ("POST /api/sessions/{id}/workers", "workers", {"type": "markdown"}, "400 `invalid`"),
    ("POST /api/sessions/{id}/prompt", "prompt", {"text": " "}, "400 `empty_message`"),
    ("POST /api/sessions/{id}/prompt", "prompt", {"text": "x", "role": "missing"}, "404 `not_found`"),
    ("POST /api/sessions/{id}/prompt", "prompt", {"text": "x", "role": "terminal"}, "409 `conflict`"),
    ("POST /api/sessions/{id}/restart", "restart", None, "404 `not_found`"),
    (
        "POST /api/sessions/{id}/permissions/{pid}",
        "permissions/missing",
        {"optionId": "x"},
        "404 `not_found`",
    ),
    ("POST /api/sessions/{id}/queue", "queue", {"message": ""}, "400 `empty_message`"),
    ("PUT /api/sessions/{id}/queue/settings", "queue/settings", {"max_size": 0}, "400 `invalid`"),
    ("GET /api/sessions/{id}/queue/{mid}", "queue/missing", None, "404 `not_found`"),
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
    ("DELETE /api/agents/{aid}", "/api/agents/missing", None, "404 `not_found`"),
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


async def test_refusals_have_the_status_and_code_of_the_page(example_server: ExampleServer) -> None:
    Path(example_server.with_real_ids(HOME), "out").symlink_to("/etc")
    for name, route, body, expected in REFUSED:
        method = name.split()[0]
        path = example_server.with_real_ids(
            route if route.startswith("/") else f"/api/sessions/{SESSION}/{route}"
        )
        answer = await example_server.server.http.request(
            method, path, json=json.loads(example_server.with_real_ids(json.dumps(body)))
        )
        assert f"{answer.status_code} `{answer.json()['error']}`" == expected, f"{name}: {answer.text}"
        text = next(section.text for section in REST if section.name == name)
        assert expected in " ".join(text.split()), f"the page does not say that {name} may answer {expected}"


async def test_a_request_repeated_with_its_key_gets_the_same_response_and_has_one_effect(
    example_server: ExampleServer,
) -> None:
    async def send(title: str) -> httpx.Response:
        body = {"locationPath": example_server.with_real_ids(HOME), "title": title}
        return await example_server.server.http.post(
            "/api/sessions", json=body, headers={"Idempotency-Key": "k1"}
        )

    first, again, other = await send("once"), await send("once"), await send("twice")
    assert (again.status_code, again.content) == (first.status_code, first.content) == (201, first.content)
    assert (other.status_code, other.json()["error"]) == (409, "conflict")
    assert (await example_server.server.call("GET", "/api/sessions?q=once"))["total"] == 1


async def test_a_revoked_token_is_refused_and_its_sockets_are_closed_with_the_code_of_the_page(
    example_server: ExampleServer,
) -> None:
    token = await example_server.server.call("POST", "/api/tokens", json={"name": "ci"})
    bearer = {"Authorization": f"Bearer {token['token']}"}
    async with example_server.server.socket("/ws/dashboard", headers=bearer) as ws:
        await FirstFrames(ws).until("sessions")
        await example_server.server.call("DELETE", f"/api/tokens/{token['id']}", 204)
        with pytest.raises(ConnectionClosed):
            async with asyncio.timeout(30):
                while True:
                    await ws.recv()
        assert ws.close_code == 4401
    assert (await example_server.server.http.get("/api/sessions", headers=bearer)).status_code == 401


class FirstFrames:
    """Reads the text frames of a socket and keeps the first one of each type."""

    def __init__(self, ws: ClientConnection) -> None:
        self._ws = ws
        self._first: dict[str, Any] = {}

    async def until(self, *types: str) -> dict[str, Any]:
        async with asyncio.timeout(60):
            while not set(types) <= set(self._first):
                await self._next()
        return self._first

    async def next(self, type: str, **values: Any) -> dict[str, Any]:
        """Return the next frame of a type that has these values."""
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
async def open_socket(
    example_server: ExampleServer, path: str, query: str = ""
) -> AsyncIterator[tuple[ClientConnection, FirstFrames, Section]]:
    section = SOCKETS[path]
    async with example_server.server.socket(example_server.real_path(path) + query) as ws:
        yield ws, FirstFrames(ws), section


def compare(section: Section, frames: dict[str, Any], *types: str) -> None:
    shown = {frame["type"]: frame for frame in section.examples("received")}
    for name in types:
        check_same_shape(shown[name], frames[name], name)


async def send_all(ws: ClientConnection, section: Section) -> None:
    for frame in section.examples("sent"):
        await ws.send(json.dumps(frame))


SESSION_FRAMES = ("events", "snapshot", "ack", "error", "heartbeat")


async def test_the_frames_of_a_session_match_the_page(example_server: ExampleServer) -> None:
    async with open_socket(example_server, "/ws/session/{id}") as (ws, frames, section):
        for frame in section.examples("sent"):
            if frame["type"] in ("subscribe", "prompt"):  # the others answer requests that do not exist yet
                await ws.send(json.dumps(frame))
        await frames.until("events", "ack")
        await ws.send(json.dumps({"type": "subscribe"}))
        await ws.send(json.dumps({"type": "dance", "id": "x1"}))
        compare(section, await frames.until(*SESSION_FRAMES), *SESSION_FRAMES)
        (error,) = [frame for frame in section.examples("received") if frame["type"] == "error"]
        assert (await frames.until("error"))["error"] == error


async def test_orders_over_a_session_socket_are_acknowledged_as_the_page_shows(
    example_server: ExampleServer,
) -> None:
    talk = SessionClient(example_server.server, {"id": example_server.with_real_ids(SESSION)})
    async with open_socket(example_server, "/ws/session/{id}") as (ws, frames, section):
        shown = {(frame["type"], frame.get("action")): frame for frame in section.examples("sent")}

        async def order(type: str, action: str | None = None, **real: str) -> dict[str, Any]:
            frame = shown.pop((type, action)) | real
            await ws.send(json.dumps(frame))
            return await frames.next("ack", id=frame["id"])

        await ws.send(json.dumps(shown.pop(("subscribe", None)) | {"notices": True}))
        await ws.send(json.dumps(shown.pop(("looking", None))))  # this frame has no acknowledgement
        await order("prompt", text="ask, question")
        permission = await talk.open_permission()  # until its answer, further messages are queued
        await talk.server.call("POST", f"{talk.path}/queue", 201, json={"message": "first"})
        added = await order("queue", "add")
        await order("queue", "move", messageId=added["messageId"])
        await order(
            "permission", permissionId=permission["id"], optionId=permission["options"][0]["optionId"]
        )
        question = await talk.wait_for_event("question", status="pending")
        await order("question", "decline", questionId=question["data"]["id"])
        notices = {frame["type"] for frame in section.examples("received")} - set(SESSION_FRAMES)
        compare(section, await frames.until(*notices), *notices)
        await order("cancel")
        assert shown == {}


async def test_the_frames_of_a_terminal_match_the_page(example_server: ExampleServer) -> None:
    async with open_socket(example_server, "/ws/session/{id}/worker/{wid}", "?client=page") as (
        ws,
        frames,
        section,
    ):
        await frames.until("history", "size")
        await send_all(ws, section)
        await frames.until("ack", "output")
        # Enter ends the line with the path of the image. Ctrl-U would not always delete it: a terminal no
        # longer edits what was typed before the shell ran `ls`.
        await ws.send(json.dumps({"type": "input", "n": 4, "data": "\rexit\r"}))
        await frames.until("exit")
        await ws.send(json.dumps({"type": "input", "n": 5, "data": "too late\r"}))
        types = ("history", "size", "ack", "output", "exit", "error", "heartbeat")
        compare(section, await frames.until(*types), *types)


async def test_binary_output_begins_with_its_offset(example_server: ExampleServer) -> None:
    async with open_socket(example_server, "/ws/session/{id}/worker/{wid}", "?format=binary&after=0") as (
        ws,
        _,
        _section,
    ):
        await ws.send(json.dumps({"type": "input", "data": "echo he''llo\r"}))
        output = b""
        async with asyncio.timeout(30):
            while b"hello" not in output:
                frame = await ws.recv()
                if isinstance(frame, bytes):
                    assert int.from_bytes(frame[:8], "big") == len(output)
                    output += frame[8:]


async def test_the_activity_frame_of_a_terminal_agent_matches_the_page(example_server: ExampleServer) -> None:
    definition = {"name": "Mine", "kind": "pty", "command": ["cat"]}
    await example_server.server.call("PUT", "/api/agents/mine", 200, json=definition)
    workers = example_server.real_path("/api/sessions/{id}/workers")
    worker = await example_server.server.call("POST", workers, 201, json={"type": "agent", "agentId": "mine"})
    async with example_server.server.socket(
        example_server.real_path(f"/ws/session/{{id}}/worker/{worker['id']}")
    ) as ws:
        compare(SOCKETS["/ws/session/{id}/worker/{wid}"], await FirstFrames(ws).until("activity"), "activity")


async def test_the_frames_of_the_dashboard_match_the_page(example_server: ExampleServer) -> None:
    session = example_server.real_path("/api/sessions/{id}")
    async with open_socket(example_server, "/ws/dashboard") as (_, frames, section):
        await frames.next("inbox", items=[])
        await example_server.server.call("PATCH", session, json={"title": "another"})
        await frames.until("session")
        await example_server.server.call("POST", f"{session}/prompt", json={"text": "ask"})
        full = await frames.next("inbox")
        await example_server.server.call("POST", f"{session}/complete")
        await example_server.server.call("DELETE", f"{session}?purge=true")
        shown = {frame["type"] for frame in section.examples("received")}
        compare(section, await frames.until(*shown) | {"inbox": full}, *shown)
        assert full["items"]


async def test_the_frames_of_the_relay_match_the_page(example_server: ExampleServer) -> None:
    section = SOCKETS["/ws/relay"]
    async with example_server.server.socket("/ws/relay") as ws:
        frames = FirstFrames(ws)
        sent = {frame["type"]: frame for frame in section.examples("sent")}

        async def ask(type: str, answer: str) -> None:
            frame = json.loads(example_server.with_real_ids(json.dumps(sent[type])))
            if type != "session:create":
                frame["sessionId"] = (await frames.until("session:created"))["session:created"]["sessionId"]
            await ws.send(json.dumps(frame))
            await frames.until(answer)

        await ask("session:create", "session:created")
        await ask("agent:spawn", "agent:ready")
        await ask("agent:list", "agent:list")
        await ask("agent:get", "agent:get")
        await ask("agent:message", "agent:response")
        await ask("agent:spawn", "error")
        await ask("agent:terminate", "agent:terminated")
        await ask("session:terminate", "session:terminated")
        shown = {frame["type"] for frame in section.examples("received")}
        compare(section, await frames.until(*shown), *shown)


async def test_a_browser_authenticates_a_socket_with_the_first_frame_of_the_page(
    example_server: ExampleServer,
) -> None:
    (shown,) = [frame for frame in examples(PAGE, "sent") if frame["type"] == "auth"]
    async with httpx.AsyncClient(base_url=example_server.server.url, trust_env=False) as browser:
        login = await browser.post("/api/login", json={"code": example_server.with_real_ids(CODE)})
    headers = {"Cookie": login.headers["set-cookie"].split(";")[0], "Origin": example_server.server.url}
    address = f"ws://127.0.0.1:{example_server.server.port}/ws/dashboard"
    async with connect(address, additional_headers=headers, proxy=None) as ws:
        await ws.send(json.dumps(shown | {"secret": login.json()["secret"]}))
        assert (await FirstFrames(ws).until("sessions"))["sessions"]
