"""Requests that come again: up to five times at once, from two clients, over a kill of the server (R-04)."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import httpx

from support.server import Server
from web.people import bearer, stranger

OTHER_BODY = {
    "activity": "idle",
    "another": "body",
    "code": "x",
    "comments": [{"path": "x", "line": 1, "text": "x"}],
    "direction": "up",
    "message": "x",
    "name": "x",
    "optionId": "x",
    "action": "decline",
    "path": "x",
    "text": "x",
    "type": "terminal",
}


DoneOnce = Callable[[Any], Awaitable[None]]


class Post(NamedTuple):
    """A request, and how one sees that it was done once; its answer is given to `done_once`."""

    route: str
    path: str
    body: dict[str, Any] | bytes | None
    done_once: DoneOnce

    @property
    def content(self) -> bytes:
        if isinstance(self.body, bytes):
            return self.body
        return b"" if self.body is None else json.dumps(self.body).encode()

    async def by(self, client: httpx.AsyncClient, content: bytes | None = None) -> httpx.Response:
        headers = {"Idempotency-Key": f"once {self.path}", "Content-Type": "application/json"}
        content = self.content if content is None else content
        return await client.post(self.path, content=content, headers=headers)


@asynccontextmanager
async def two_clients(server: Server) -> AsyncIterator[tuple[httpx.AsyncClient, httpx.AsyncClient]]:
    """The same person twice; not the owner, whose token one of the requests replaces."""
    admin = await bearer(server)
    async with stranger(server) as one, stranger(server) as other:
        one.headers.update(admin)
        other.headers.update(admin)
        yield one, other


async def send_again_and_again(server: Server, posts: Sequence[Post]) -> None:
    """Each one to five times at once, once more after a kill, then with another body."""
    async with two_clients(server) as clients:
        first = [await _send_at_once(post, clients, number % 5 + 1) for number, post in enumerate(posts)]
        await server.kill()
        await server.start(wait=False)
        await _until_healthy(clients[0])
        for post, before in zip(posts, first, strict=True):
            assert _said(await post.by(clients[1])) == _said(before), post.route
            other = await post.by(clients[0], json.dumps(OTHER_BODY).encode())
            assert (other.status_code, other.json()["error"]) == (409, "conflict"), (
                f"{post.route}: {other.text}"
            )
            await post.done_once(before.json() if before.content else None)


async def _send_at_once(
    post: Post, clients: tuple[httpx.AsyncClient, httpx.AsyncClient], times: int
) -> httpx.Response:
    answers = await asyncio.gather(*(post.by(clients[n % 2]) for n in range(times)))
    assert answers[0].is_success, f"{post.route}: {answers[0].text}"
    assert {_said(answer) for answer in answers} == {_said(answers[0])}, post.route
    return answers[0]


def _said(answer: httpx.Response) -> tuple[int, bytes, str]:
    return answer.status_code, answer.content, answer.headers.get("set-cookie", "").split(";")[0]


async def _until_healthy(client: httpx.AsyncClient) -> None:
    async with asyncio.timeout(60):
        while True:
            try:
                if (await client.get("/api/health")).status_code == 200:
                    return
            except httpx.TransportError:
                pass
            await asyncio.sleep(0.02)
