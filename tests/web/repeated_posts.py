"""Send POST requests repeatedly: up to five at once, from two clients, and after a kill of the server."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import httpx

from support.server import Server
from web.clients import anonymous_client, new_token_headers

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
    """A request, and the check that its effect happened once. `done_once` gets the decoded response."""

    route: str
    path: str
    body: dict[str, Any] | bytes | None
    done_once: DoneOnce

    @property
    def content(self) -> bytes:
        if isinstance(self.body, bytes):
            return self.body
        return b"" if self.body is None else json.dumps(self.body).encode()

    async def send(self, client: httpx.AsyncClient, content: bytes | None = None) -> httpx.Response:
        headers = {"Idempotency-Key": f"once {self.path}", "Content-Type": "application/json"}
        content = self.content if content is None else content
        return await client.post(self.path, content=content, headers=headers)


@asynccontextmanager
async def two_clients(server: Server) -> AsyncIterator[tuple[httpx.AsyncClient, httpx.AsyncClient]]:
    """Open two clients with one token. It is not the owner's token, which one of the requests replaces."""
    admin = await new_token_headers(server)
    async with anonymous_client(server) as first, anonymous_client(server) as second:
        first.headers.update(admin)
        second.headers.update(admin)
        yield first, second


async def check_posts_are_idempotent(server: Server, posts: Sequence[Post]) -> None:
    """Send each request one to five times at once, again after a kill, and once with another body."""
    async with two_clients(server) as clients:
        first = [await _send_at_once(post, clients, number % 5 + 1) for number, post in enumerate(posts)]
        await server.kill()
        await server.start(wait=False)
        await _wait_until_healthy(clients[0])
        for post, before in zip(posts, first, strict=True):
            assert _comparable_parts(await post.send(clients[1])) == _comparable_parts(before), post.route
            other = await post.send(clients[0], json.dumps(OTHER_BODY).encode())
            assert (other.status_code, other.json()["error"]) == (409, "conflict"), (
                f"{post.route}: {other.text}"
            )
            await post.done_once(before.json() if before.content else None)


async def _send_at_once(
    post: Post, clients: tuple[httpx.AsyncClient, httpx.AsyncClient], times: int
) -> httpx.Response:
    answers = await asyncio.gather(*(post.send(clients[n % 2]) for n in range(times)))
    assert answers[0].is_success, f"{post.route}: {answers[0].text}"
    assert {_comparable_parts(answer) for answer in answers} == {_comparable_parts(answers[0])}, post.route
    return answers[0]


def _comparable_parts(answer: httpx.Response) -> tuple[int, bytes, str]:
    """Return the status, the body and the cookie of a response, without the attributes of the cookie."""
    return answer.status_code, answer.content, answer.headers.get("set-cookie", "").split(";")[0]


async def _wait_until_healthy(client: httpx.AsyncClient) -> None:
    async with asyncio.timeout(60):
        while True:
            try:
                if (await client.get("/api/health")).status_code == 200:
                    return
            except httpx.TransportError:
                pass
            await asyncio.sleep(0.02)
