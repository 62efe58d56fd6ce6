"""docs/protocol.md says what the server does: every route, event and frame, each example as it comes."""

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute, APIWebSocketRoute
from websockets.asyncio.client import ClientConnection, connect

from bullpen.domain.events import FACTS, Unknown, read_fact
from bullpen.web import sockets
from bullpen.web.app import every_route
from bullpen.web.errors import STATUS
from bullpen.web.rest.answers import once
from bullpen.web.scopes import allow
from support.server import Server

PAGE = (Path(__file__).parents[2] / "docs" / "protocol.md").read_text()
SECTION = re.compile(r"^### `(\w+) (/\S*)`\n(.*?)(?=^##|\Z)", re.MULTILINE | re.DOTALL)
RULE = re.compile(r"^\*(\w+)(?: → (\d+))?(, with Idempotency-Key)?\*$", re.MULTILINE)
BLOCK = re.compile(r"^```json (\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NOT_YET_USED = {"empty_message", "queue_full"}  # of the message queue

# The ids the examples use; a test puts real ones in their place.
SESSION = "4c0f1f0e-3a52-4a0e-9d0b-6a5f1b1d2c01"
WORKER = "9b7e2c44-5d0a-4b53-8f0e-1d2f3a4b5c02"
REPOSITORY = "1f6d3b9a-7c21-4e5d-a3b8-0c9d8e7f6a03"
TOKEN = "7a2b9c0d-1e2f-4a3b-8c4d-5e6f7a8b9c04"
CODE = "Zk3v0pQm1cX9rT5yW8aBdg"
HOME = "/home/ada"


class Section(NamedTuple):
    """What the page says of one route."""

    method: str
    path: str
    text: str

    @property
    def name(self) -> str:
        return f"{self.method} {self.path}"

    @property
    def rule(self) -> re.Match[str]:
        found = RULE.search(self.text)
        assert found, f"{self.name} does not state who may call it"
        return found

    def examples(self, kind: str) -> list[Any]:
        return list(examples(self.text, kind))


def examples(text: str, kind: str) -> Iterator[Any]:
    """The JSON values in the blocks of a kind; a block may hold several."""
    rest = "".join(body for found, body in BLOCK.findall(text) if found == kind).strip()
    while rest:
        value, end = json.JSONDecoder().raw_decode(rest)
        yield value
        rest = rest[end:].lstrip()


SECTIONS = [Section(*found) for found in SECTION.findall(PAGE)]
REST = [section for section in SECTIONS if section.method != "WS"]
SOCKETS = {section.path: section for section in SECTIONS if section.method == "WS"}


def nameless(path: str) -> str:
    """A path without the names of its parameters, which are the code's own business."""
    return re.sub(r"\{[^}]*\}", "{}", path)


def routes() -> dict[tuple[str, str], APIRoute | APIWebSocketRoute]:
    found: dict[tuple[str, str], APIRoute | APIWebSocketRoute] = {}
    for route in every_route():
        match route:
            case APIRoute():
                found |= {(method, nameless(route.path)): route for method in route.methods or ()}
            case APIWebSocketRoute():
                found["WS", nameless(route.path)] = route
    return found


def calls(dependant: Dependant) -> Iterator[Any]:
    for dependency in dependant.dependencies:
        yield dependency.call
        yield from calls(dependency)


def test_every_route_is_in_the_page_and_every_route_of_the_page_is_there() -> None:
    assert [
        (section.method, nameless(section.path)) for section in SECTIONS if SECTIONS.count(section) > 1
    ] == []
    assert {(section.method, nameless(section.path)) for section in SECTIONS} == set(routes())


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.name)
def test_the_page_says_who_may_call_a_route_and_what_it_takes(section: Section) -> None:
    route = routes()[section.method, nameless(section.path)]
    used = list(calls(route.dependant))
    scope = next((call.scope.name.lower() for call in used if isinstance(call, allow)), "public")
    assert section.rule[1] == scope
    assert bool(section.rule[3]) == (once in used)
    for parameter in route.dependant.query_params:
        assert re.search(rf"`{parameter.alias}\b", section.text), (
            f"the parameter {parameter.alias} is not described"
        )


def test_every_error_is_in_the_page_under_its_status() -> None:
    listed = {code: int(status) for status, code in re.findall(r"^\| (\d+) \| `(\w+)`", PAGE, re.MULTILINE)}
    framework = {"method_not_allowed": 405, "too_large": 413, "unsupported_media_type": 415, "internal": 500}
    assert listed == {code: status for code, status in STATUS.items() if code not in NOT_YET_USED} | framework
    for status, code in re.findall(r"\b([45]\d\d)\s+`(\w+)`", PAGE):
        assert listed[code] == int(status)


def facts_of_a_server() -> set[str]:
    """Asked of a fresh process: other tests may have imported facts no server writes yet."""
    program = "import bullpen.main; from bullpen.domain.events import FACTS; print(*FACTS)"
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(said.stdout.split()) - {Unknown.type}


def test_every_event_is_in_the_page_with_all_its_fields() -> None:
    described = set(re.findall(r"^\*\*`(\w+)`\*\*", PAGE, re.MULTILINE))
    shown = {event["type"]: event for event in examples(PAGE, "event")}
    assert described == set(shown) == facts_of_a_server()
    for name, event in shown.items():
        fact = read_fact(name, event["data"])
        assert isinstance(fact, FACTS[name]), f"the example of {name} is not one"
        assert fact.to_data() == event["data"], f"the example of {name} has other fields"


def test_every_frame_is_in_the_page() -> None:
    source = "".join(path.read_text() for path in Path(sockets.__file__).parent.glob("*.py"))
    sends = set(re.findall(r'"type": ?"(\w+)"', source))
    takes = set(re.findall(r'case "(\w+)":', source)) | {"auth"}
    assert {frame["type"] for frame in examples(PAGE, "received")} == sends
    assert {frame["type"] for frame in examples(PAGE, "sent")} == takes


# -- the examples against a real server -------------------------------------------------------------


def same_shape(shown: Any, real: Any, where: str = "$") -> None:
    """The same fields with the same kinds of values; null and an empty list stand for any."""
    match shown, real:
        case (None, _) | (_, None) | ([], list()) | (list(), []):
            return
        case dict(), dict() if where.endswith(".metadata"):
            return
        case dict(), dict():
            assert set(shown) == set(real), f"{where} has other fields"
            for name in shown:
                same_shape(shown[name], real[name], f"{where}.{name}")
        case list(), list():
            same_shape(shown[0], real[0], f"{where}[0]")
        case _:
            assert type(shown) is type(real), f"{where} is {real!r}, not like {shown!r}"


class Stage:
    """A session with a terminal, a repository, a token and a code, in the place of those in the examples."""

    def __init__(self, server: Server, real: dict[str, str]) -> None:
        self.server = server
        self._real = real

    @classmethod
    async def set_up(cls, server: Server, name: str = "stage") -> "Stage":
        home = server.workspace / name
        for repository in ("project", "other"):
            subprocess.run(["git", "init", "-q", home / repository], check=True)
        project = str(home / "project")
        registered = await server.call("POST", "/api/repositories", json={"path": project})
        session = await server.new_session(locationPath=project, title="fix the build")
        worker = await server.new_terminal(session["id"])
        token = await server.call("POST", "/api/tokens", json={"name": "phone", "scope": "view"})
        code = await server.call("POST", "/api/login-codes")
        return cls(
            server,
            {
                SESSION: session["id"],
                WORKER: worker["id"],
                REPOSITORY: registered["id"],
                TOKEN: token["id"],
                CODE: code["code"],
                HOME: str(home),
            },
        )

    def real(self, text: str) -> str:
        for shown, real in self._real.items():
            text = text.replace(shown, real)
        return text

    def path(self, path: str) -> str:
        first = {"repositories": REPOSITORY, "tokens": TOKEN}.get(path.split("/")[2], SESSION)
        return self.real(path.replace("{id}", first).replace("{wid}", WORKER))

    async def call(self, section: Section) -> httpx.Response:
        """The request of the page."""
        if section.path.endswith("/restart"):
            await self._end_worker_by_itself()
        bodies = section.examples("request")
        body = json.loads(self.real(json.dumps(bodies[0]))) if bodies else None
        return await self.server.http.request(section.method, self.path(section.path), json=body)

    async def _end_worker_by_itself(self) -> None:
        async with self.server.socket(self.path("/ws/session/{id}/worker/{wid}")) as ws:
            await ws.send(json.dumps({"type": "input", "data": "exit\r"}))
            await self.server.worker_in(self.real(SESSION), self.real(WORKER), "exited")


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


class Seen:
    """The text frames of a socket, the first of each type; output as JSON or binary counts as output."""

    def __init__(self, ws: ClientConnection) -> None:
        self._ws = ws
        self._first: dict[str, Any] = {}

    async def until(self, *types: str) -> dict[str, Any]:
        async with asyncio.timeout(30):
            while not set(types) <= set(self._first):
                frame = json.loads(await self._ws.recv())
                self._first.setdefault(frame["type"], frame)
        return self._first


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


async def test_the_frames_of_a_session_are_as_the_page_shows_them(stage: Stage) -> None:
    async with opened(stage, "/ws/session/{id}") as (ws, seen, section):
        await send_all(ws, section)
        await seen.until("events")
        await ws.send(json.dumps({"type": "subscribe"}))
        await ws.send(json.dumps({"type": "dance", "id": "x1"}))
        types = ("events", "snapshot", "error", "heartbeat")
        compare(section, await seen.until(*types), *types)
        (error,) = [frame for frame in section.examples("received") if frame["type"] == "error"]
        assert (await seen.until("error"))["error"] == error


async def test_the_frames_of_a_terminal_are_as_the_page_shows_them(stage: Stage) -> None:
    async with opened(stage, "/ws/session/{id}/worker/{wid}", "?format=json&client=page") as (
        ws,
        seen,
        section,
    ):
        await seen.until("history", "size")
        await send_all(ws, section)
        await seen.until("ack", "output")
        await ws.send(json.dumps({"type": "input", "n": 3, "data": "exit\r"}))
        await seen.until("exit")
        await ws.send(json.dumps({"type": "input", "n": 4, "data": "too late\r"}))
        types = ("history", "size", "ack", "output", "exit", "error")
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


async def test_the_frames_of_the_dashboard_are_as_the_page_shows_them(stage: Stage) -> None:
    async with opened(stage, "/ws/dashboard") as (_, seen, section):
        await seen.until("sessions")
        await stage.server.call("PATCH", stage.path("/api/sessions/{id}"), json={"title": "another"})
        compare(section, await seen.until("session"), "sessions", "session")


async def test_a_login_opens_a_socket_with_the_first_frame_of_the_page(stage: Stage) -> None:
    (shown,) = [frame for frame in examples(PAGE, "sent") if frame["type"] == "auth"]
    async with httpx.AsyncClient(base_url=stage.server.url, trust_env=False) as browser:
        login = await browser.post("/api/login", json={"code": stage.real(CODE)})
    headers = {"Cookie": login.headers["set-cookie"].split(";")[0], "Origin": stage.server.url}
    address = f"ws://127.0.0.1:{stage.server.port}/ws/dashboard"
    async with connect(address, additional_headers=headers, proxy=None) as ws:
        await ws.send(json.dumps(shown | {"secret": login.json()["secret"]}))
        assert (await Seen(ws).until("sessions"))["sessions"]
