"""R-04: every POST sent up to five times, from two clients, over a kill: done once, answered the same."""

import asyncio
import json
import sqlite3
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
from fastapi.routing import APIRoute

from bullpen.web.app import every_route
from support.server import Server
from web.people import bearer, new_code, stranger

Check = Callable[["Stage", Any], Awaitable[None]]


class Stage(NamedTuple):
    """What the requests are about, and who sends them."""

    server: Server
    session: str
    ended_session: str
    worker: str
    repository: Path
    clients: tuple[httpx.AsyncClient, httpx.AsyncClient]

    def database(self, query: str) -> Any:
        with sqlite3.connect(self.server.home / "bullpen.db") as connection:
            return connection.execute(query).fetchone()[0]

    async def events(self, session: str, kind: str) -> int:
        page = await self.get(f"/api/sessions/{session}/events?types={kind}")
        return len(page["events"])

    async def get(self, path: str) -> Any:
        answer = await self.clients[0].get(path)
        assert answer.status_code == 200, answer.text
        return answer.json()


class Post(NamedTuple):
    """A request, and how one sees that it was done once."""

    path: Callable[[Stage], str]
    body: Callable[[Stage], Any]
    done_once: Check


async def one_session(stage: Stage, _: Any) -> None:
    assert (await stage.get("/api/sessions?q=only+one"))["total"] == 1


async def one_worker(stage: Stage, _: Any) -> None:
    workers = (await stage.get(f"/api/sessions/{stage.session}/workers"))["workers"]
    assert [worker["role"] for worker in workers].count("builder") == 1
    assert await stage.events(stage.session, "worker_spawning") == 3  # the stage's, its restart, this one


async def second_run(stage: Stage, answer: Any) -> None:
    assert answer["run"] == 2
    assert (await stage.get(f"/api/sessions/{stage.session}/workers/{stage.worker}"))["run"] == 2


async def one_end(stage: Stage, _: Any) -> None:
    assert await stage.events(stage.ended_session, "session_end") == 1


async def one_repository(stage: Stage, _: Any) -> None:
    assert len((await stage.get("/api/repositories"))["repositories"]) == 1


async def one_token(stage: Stage, answer: Any) -> None:
    tokens = (await stage.get("/api/tokens"))["tokens"]
    assert [token["name"] for token in tokens].count("only one") == 1
    mine = {"Authorization": f"Bearer {answer['token']}"}
    assert (await stage.clients[0].get("/api/sessions", headers=mine)).status_code == 200


async def one_device(stage: Stage, _: Any) -> None:
    tokens = (await stage.get("/api/tokens"))["tokens"]
    assert [token["kind"] for token in tokens].count("device") == 1


async def one_code(stage: Stage, answer: Any) -> None:
    async with stranger(stage.server) as browser:
        logins = [await browser.post("/api/login", json={"code": answer["code"]}) for _ in range(2)]
    assert [login.status_code for login in logins] == [200, 401]


async def one_rotation(stage: Stage, answer: Any) -> None:
    assert (stage.server.home / "token").read_text().strip() == answer["token"]
    retired = stage.database("SELECT value FROM settings WHERE key = 'owner.retired'")
    assert len(json.loads(retired)) == 1


async def nothing_to_see(stage: Stage, _: Any) -> None:
    assert (await stage.get(f"/api/sessions/{stage.session}"))["status"] == "active"


async def body_of_login(stage: Stage) -> Any:
    return {"code": await new_code(stage.server)}


POSTS = {
    "/api/sessions": Post(lambda _: "/api/sessions", lambda _: {"title": "only one"}, one_session),
    "/api/sessions/{session_id}/workers": Post(
        lambda stage: f"/api/sessions/{stage.session}/workers",
        lambda _: {"type": "terminal", "role": "builder"},
        one_worker,
    ),
    "/api/sessions/{session_id}/workers/{worker_id}/restart": Post(
        lambda stage: f"/api/sessions/{stage.session}/workers/{stage.worker}/restart",
        lambda _: None,
        second_run,
    ),
    "/api/sessions/{session_id}/complete": Post(
        lambda stage: f"/api/sessions/{stage.ended_session}/complete", lambda _: None, one_end
    ),
    "/api/sessions/{session_id}/leave": Post(
        lambda stage: f"/api/sessions/{stage.session}/leave", lambda _: None, nothing_to_see
    ),
    "/api/repositories": Post(
        lambda _: "/api/repositories", lambda stage: {"path": str(stage.repository)}, one_repository
    ),
    "/api/tokens": Post(lambda _: "/api/tokens", lambda _: {"name": "only one"}, one_token),
    "/api/tokens/rotate": Post(lambda _: "/api/tokens/rotate", lambda _: None, one_rotation),
    "/api/login": Post(lambda _: "/api/login", body_of_login, one_device),
    "/api/login-codes": Post(lambda _: "/api/login-codes", lambda _: None, one_code),
}


def test_every_post_is_in_the_table() -> None:
    posts = {
        route.path
        for route in every_route()
        if isinstance(route, APIRoute) and "POST" in (route.methods or ())
    }
    assert posts == set(POSTS)


@pytest.fixture
async def stage(server: Server) -> AsyncIterator[Stage]:
    repository = server.workspace / "project"
    subprocess.run(["git", "init", "-q", repository], check=True)
    session, ended = await server.new_session(), await server.new_session()
    worker, _ = await server.new_terminal(session["id"]), await server.new_terminal(ended["id"])
    async with server.socket(f"/ws/session/{session['id']}/worker/{worker['id']}") as ws:
        await ws.send(json.dumps({"type": "input", "data": "exit\r"}))
        await server.worker_in(session["id"], worker["id"], "exited")
    admin = await bearer(server)  # not the owner: one of the requests is to replace the owner's token
    clients = (stranger(server), stranger(server))
    for client in clients:
        client.headers.update(admin)
    yield Stage(server, session["id"], ended["id"], worker["id"], repository, clients)
    for client in clients:
        await client.aclose()


class Sent(NamedTuple):
    """A request under a key, as often as one likes."""

    path: str
    body: bytes
    key: str

    async def by(self, client: httpx.AsyncClient, body: bytes | None = None) -> httpx.Response:
        headers = {"Idempotency-Key": self.key, "Content-Type": "application/json"}
        return await client.post(self.path, content=self.body if body is None else body, headers=headers)


def said(answer: httpx.Response) -> tuple[int, bytes, str | None]:
    return answer.status_code, answer.content, answer.headers.get("set-cookie", "").split(";")[0]


async def prepared(stage: Stage) -> list[tuple[Sent, Check]]:
    requests = []
    for number, post in enumerate(POSTS.values()):
        body = post.body(stage)
        body = await body if asyncio.iscoroutine(body) else body
        content = b"" if body is None else json.dumps(body).encode()
        requests.append((Sent(post.path(stage), content, f"request {number}"), post.done_once))
    return requests


async def test_every_post_is_done_once_and_answered_the_same_however_often_it_comes(stage: Stage) -> None:
    requests = await prepared(stage)
    first: list[httpx.Response] = []
    for number, (request, _) in enumerate(requests):
        times = number % 5 + 1
        answers = await asyncio.gather(*(request.by(stage.clients[n % 2]) for n in range(times)))
        assert answers[0].is_success, f"{request.path}: {answers[0].text}"
        assert {said(answer) for answer in answers} == {said(answers[0])}, request.path
        first.append(answers[0])
    await stage.server.kill()
    await stage.server.start(wait=False)
    await until_healthy(stage.clients[0])
    for (request, done_once), before in zip(requests, first, strict=True):
        again = await request.by(stage.clients[1])
        assert said(again) == said(before), request.path
        other = await request.by(
            stage.clients[0],
            b'{"another": "body", "code": "x", "name": "x", "path": "x", "type": "terminal"}',
        )
        assert (other.status_code, other.json()["error"]) == (409, "conflict"), request.path
        await done_once(stage, before.json() if before.content else None)


async def until_healthy(client: httpx.AsyncClient) -> None:
    async with asyncio.timeout(20):
        while True:
            try:
                if (await client.get("/api/health")).status_code == 200:
                    return
            except httpx.TransportError:
                pass
            await asyncio.sleep(0.02)


@pytest.mark.asyncio(loop_scope="session")
async def test_what_failed_may_be_tried_again_under_its_key(house: Server) -> None:
    place = house.workspace / "later"
    headers = {"Idempotency-Key": "later"}
    body = {"path": str(place)}
    assert (await house.http.post("/api/repositories", json=body, headers=headers)).status_code == 404
    subprocess.run(["git", "init", "-q", place], check=True)
    assert (await house.http.post("/api/repositories", json=body, headers=headers)).status_code == 201


@pytest.mark.asyncio(loop_scope="session")
async def test_a_key_belongs_to_who_uses_it(house: Server) -> None:
    headers = {"Idempotency-Key": "mine"}
    first = await house.http.post("/api/sessions", json={}, headers=headers)
    other = await house.http.post("/api/sessions", json={}, headers=headers | await bearer(house))
    assert (first.status_code, other.status_code) == (201, 201)
    assert first.json()["id"] != other.json()["id"]


@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize("key", ["", "x" * 201, "tab\there"])
async def test_a_key_that_is_none_is_invalid(house: Server, key: str) -> None:
    answer = await house.http.post("/api/sessions", json={}, headers={"Idempotency-Key": key})
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid")
