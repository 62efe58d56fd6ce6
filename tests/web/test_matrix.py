"""S-01: every route and method, and every socket, against every kind of credential."""

import asyncio
import itertools
import re
import socket
from http.client import HTTPConnection
from typing import Any, NamedTuple

import pytest
from fastapi.routing import APIRoute, APIWebSocketRoute
from websockets.exceptions import InvalidStatus

from bullpen.web.app import every_route
from support.server import Server
from web.people import SCOPES, Headers, bearer, bearing, log_in

pytestmark = pytest.mark.asyncio(loop_scope="session")

# Who may. A route that is not here fails the test: decide it here first.
WHO_MAY = {
    "GET /": "anybody",
    "GET /{path:path}": "anybody",
    "GET /api/health": "anybody",
    "POST /api/login": "anybody",
    "POST /api/login-codes": "admin",
    "GET /api/tokens": "admin",
    "POST /api/tokens": "admin",
    "POST /api/tokens/rotate": "admin",
    "DELETE /api/tokens/{token_id}": "admin",
    "GET /api/roots": "admin",
    "POST /api/roots": "admin",
    "DELETE /api/roots": "admin",
    "GET /api/settings": "admin",
    "PATCH /api/settings": "admin",
    "GET /metrics": "admin",
    "GET /api/openapi.json": "view",
    "GET /api/repositories": "view",
    "POST /api/repositories": "operate",
    "GET /api/repositories/{repo_id}": "view",
    "PATCH /api/repositories/{repo_id}": "operate",
    "DELETE /api/repositories/{repo_id}": "operate",
    "GET /api/repositories/{repo_id}/worktrees": "view",
    "POST /api/repositories/{repo_id}/worktrees": "operate",
    "DELETE /api/repositories/{repo_id}/worktrees/{name}": "operate",
    "POST /api/repositories/{repo_id}/worktrees/{name}/restore": "operate",
    "GET /api/agents": "view",
    "POST /api/agents": "admin",
    "PUT /api/agents/{agent_id}": "admin",
    "DELETE /api/agents/{agent_id}": "admin",
    "POST /api/import": "operate",
    "GET /api/inbox": "view",
    "GET /api/search": "view",
    "GET /api/usage": "view",
    "GET /api/rules": "view",
    "POST /api/rules": "admin",
    "DELETE /api/rules/{name}": "admin",
    "POST /api/sessions/{session_id}/seen": "operate",
    "PUT /api/recordings/{session_id}": "operate",
    "POST /api/recordings/rebuild": "operate",
    "GET /api/sessions/{session_id}/export": "view",
    "GET /api/sessions/{session_id}/timeline": "view",
    "POST /api/sessions/{session_id}/share": "admin",
    "GET /api/sessions": "view",
    "POST /api/sessions": "operate",
    "GET /api/sessions/{session_id}": "view",
    "PATCH /api/sessions/{session_id}": "operate",
    "DELETE /api/sessions/{session_id}": "operate",
    "POST /api/sessions/{session_id}/complete": "operate",
    "POST /api/sessions/{session_id}/leave": "view",
    "POST /api/sessions/{session_id}/restart": "operate",
    "POST /api/sessions/{session_id}/prompt": "operate",
    "POST /api/sessions/{session_id}/cancel": "operate",
    "GET /api/sessions/{session_id}/permissions": "view",
    "POST /api/sessions/{session_id}/permissions/{permission_id}": "operate",
    "GET /api/sessions/{session_id}/questions": "view",
    "POST /api/sessions/{session_id}/questions/{question_id}": "operate",
    "GET /api/sessions/{session_id}/queue": "view",
    "POST /api/sessions/{session_id}/queue": "operate",
    "DELETE /api/sessions/{session_id}/queue": "operate",
    "POST /api/sessions/{session_id}/queue/pause": "operate",
    "POST /api/sessions/{session_id}/queue/resume": "operate",
    "GET /api/sessions/{session_id}/queue/settings": "view",
    "PUT /api/sessions/{session_id}/queue/settings": "operate",
    "GET /api/sessions/{session_id}/queue/{message_id}": "view",
    "PATCH /api/sessions/{session_id}/queue/{message_id}": "operate",
    "DELETE /api/sessions/{session_id}/queue/{message_id}": "operate",
    "POST /api/sessions/{session_id}/queue/{message_id}/move": "operate",
    "POST /api/sessions/{session_id}/queue/{message_id}/send-now": "operate",
    "POST /api/sessions/{session_id}/images": "operate",
    "GET /api/sessions/{session_id}/images/{image_id}": "view",
    "GET /api/sessions/{session_id}/diff": "view",
    "POST /api/sessions/{session_id}/diff/comments": "operate",
    "GET /api/sessions/{session_id}/files": "view",
    "GET /api/sessions/{session_id}/files/{path:path}": "view",
    "GET /api/sessions/{session_id}/ports": "view",
    "GET /api/sessions/{session_id}/events": "view",
    "GET /api/sessions/{session_id}/messages": "view",
    "GET /api/sessions/{session_id}/workers": "view",
    "POST /api/sessions/{session_id}/workers": "operate",
    "GET /api/sessions/{session_id}/workers/{worker_id}": "view",
    "DELETE /api/sessions/{session_id}/workers/{worker_id}": "operate",
    "POST /api/sessions/{session_id}/workers/{worker_id}/restart": "operate",
    "POST /api/sessions/{session_id}/workers/{worker_id}/login": "operate",
    "PUT /api/sessions/{session_id}/workers/{worker_id}/mode": "operate",
    "PUT /api/sessions/{session_id}/workers/{worker_id}/model": "operate",
    "PUT /api/sessions/{session_id}/workers/{worker_id}/options/{option_id}": "operate",
    "GET /api/sessions/{session_id}/workers/{worker_id}/output": "view",
    "GET /api/sessions/{session_id}/workers/{worker_id}/recording.cast": "view",
    # These and the worker itself: test_worker_keys.py, test_delegates.py
    "POST /api/workers/{worker_id}/activity": "operate",
    "POST /api/workers/{worker_id}/questions": "operate",
    "GET /api/workers/{worker_id}/questions/{question_id}": "operate",
    "WS /ws/dashboard": "view",
    "WS /ws/relay": "view",
    "WS /ws/session/{session_id}": "view",
    "WS /ws/session/{session_id}/worker/{worker_id}": "view",
}
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
# Tried with every method; the others only where there is a route.
USUAL = (
    "nothing",
    "garbage",
    "an expired token",
    "view token",
    "operate token",
    "admin token",
)
# What is on the disk or runs now is not what happened in the session.
NO_GUESTS = (
    "GET /api/sessions/{session_id}/diff",
    "GET /api/sessions/{session_id}/files",
    "GET /api/sessions/{session_id}/files/{path:path}",
    "GET /api/sessions/{session_id}/ports",
)
SHARE = "a share of another session"
NOBODY = "00000000-0000-4000-8000-000000000000"
# Stops what is allowed right behind the door, before it has an effect.
NO_EFFECT = {"Idempotency-Key": "x" * 201}


class Credential(NamedTuple):
    name: str
    headers: Headers
    scope: str | None  # None: it opens nothing

    @property
    def is_somebody(self) -> bool:
        """Whether the server knows whose it is, be it enough or not."""
        return self.scope is not None or "a real cookie" in self.name or self.name == SHARE

    def may(self, who: str) -> bool:
        if who == "anybody" and self.name == SHARE:
            return True
        if who == "anybody":
            # A wrong bearer is refused even where none is needed: better than to ignore it.
            return self.scope is not None or "Authorization" not in self.headers
        return self.scope is not None and SCOPES.index(self.scope) >= SCOPES.index(who)


async def expired(server: Server) -> Headers:
    headers = await bearer(server, "admin", expiresIn=1)
    async with asyncio.timeout(60):
        while (await server.http.get("/api/sessions", headers=headers)).status_code != 401:
            await asyncio.sleep(0.05)
    return headers


async def guest(server: Server, session_id: str, **body: Any) -> Headers:
    """Whoever has the link to one session."""
    made = await server.call("POST", f"/api/sessions/{session_id}/share", 201, json=body)
    return bearing(made["token"])


async def credentials(server: Server) -> list[Credential]:
    browsers = {scope: await log_in(server, scope) for scope in SCOPES}
    wrong_secret = {**browsers["admin"].cookie, "X-Bullpen-Secret": browsers["view"].secret}
    as_bearer = bearing(browsers["admin"].cookie["Cookie"].split("=", 1)[1])
    return [
        Credential("nothing", {}, None),
        Credential("garbage", bearing("wrong"), None),
        Credential("an empty bearer", {"Authorization": "Bearer"}, None),
        Credential("a password", {"Authorization": "Basic dXNlcjp0b2tlbg=="}, None),
        Credential("an expired token", await expired(server), None),
        Credential(SHARE, await guest(server, (await server.new_session())["id"]), None),
        Credential("a garbage cookie", {"Cookie": "bullpen=wrong", "X-Bullpen-Secret": "wrong"}, None),
        Credential("a real cookie alone", browsers["admin"].cookie, None),
        Credential("a real cookie with another's secret", wrong_secret, None),
        Credential("a cookie as bearer", as_bearer, None),
        *[Credential(f"{scope} token", await bearer(server, scope), scope) for scope in SCOPES],
        *[Credential(f"{scope} device", browsers[scope].headers, scope) for scope in SCOPES],
    ]


def routes() -> set[str]:
    found = set()
    for route in every_route():
        match route:
            case APIRoute():
                found |= {f"{method} {route.path}" for method in route.methods or ()}
            case APIWebSocketRoute():
                found.add(f"WS {route.path}")
            case _:
                found.add(f"? {route}")
    return found


def filled(path: str) -> str:
    return re.sub(r"\{\w+\}", NOBODY, path.replace("{path:path}", "nothing-here"))


async def test_every_route_is_in_the_table_and_nothing_else() -> None:
    assert routes() == set(WHO_MAY)


async def test_b8_every_route_and_method_opens_exactly_for_those_who_may(house: Server) -> None:
    paths = sorted({route.split()[1] for route in WHO_MAY if not route.startswith("WS")})
    people = await credentials(house)
    tokens = [who for who in people if who.name in USUAL]
    tries = list(itertools.product(METHODS, paths, tokens))
    tries += [
        (method, path, who) for method, path in map(str.split, WHO_MAY) for who in people if method != "WS"
    ]
    statuses = await asyncio.to_thread(_statuses, house, tries)
    for (method, path, who), status in zip(tries, statuses, strict=True):
        _check(method, path, who, status)


def _statuses(server: Server, tries: list[tuple[str, str, Credential]]) -> list[int]:
    """Over one connection of the standard library: there are thousands."""
    connection = HTTPConnection("127.0.0.1", server.port, timeout=30)
    statuses = []
    for method, path, who in tries:
        connection.request(method, filled(path), headers={**who.headers, **NO_EFFECT})
        with connection.getresponse() as answer:
            answer.read()
            statuses.append(answer.status)
    connection.close()
    return statuses


def _check(method: str, path: str, who: Credential, status: int) -> None:
    told = f"{method} {path} with {who.name} got {status}"
    allowed_to = _who_may(method, path)
    if allowed_to is None and who.scope:
        assert status in (404, 405), told  # only those who are known learn that it is not there
    elif allowed_to and who.may(allowed_to):
        assert status in (200, 400, 404) or (method, status) == ("HEAD", 405), told
    else:
        assert status == (403 if who.is_somebody else 401), told


def _who_may(method: str, path: str) -> str | None:
    """What the table says of it, or of a route with a name in its place: `rotate` could be a token's id."""
    if method == "HEAD" and WHO_MAY.get(f"GET {path}") == "anybody":
        return "anybody"
    fits = (
        route for route in WHO_MAY if re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", route), f"{method} {path}")
    )
    return WHO_MAY.get(f"{method} {path}") or WHO_MAY.get(next(fits, ""))


async def test_every_socket_opens_exactly_for_those_who_may(house: Server) -> None:
    for route, who in itertools.product(WHO_MAY, await credentials(house)):
        if not route.startswith("WS") or "Cookie" in who.headers:  # logins have tests of their own
            continue
        opened = await _opens(house, filled(route.split()[1]), who.headers)
        assert opened == who.may(WHO_MAY[route]), f"{route} with {who.name}"


async def _opens(server: Server, path: str, headers: Headers) -> bool:
    try:
        async with server.socket(path, headers={"Authorization": "", **headers}):
            return True
    except InvalidStatus as refused:
        assert refused.response.status_code in (401, 403)
        return False


async def test_a_share_opens_what_can_be_seen_of_its_session_and_nothing_else(house: Server) -> None:
    session = await house.new_session()
    worker = await house.new_terminal(session["id"])
    headers = await guest(house, session["id"])
    for route, who in WHO_MAY.items():
        method, path = route.split()
        path = path.replace("{session_id}", session["id"]).replace("{worker_id}", worker["id"])
        own = "{session_id}" in route and who == "view" and method in ("GET", "WS") and route not in NO_GUESTS
        if method == "WS":
            assert await _opens(house, filled(path), headers) == own, route
        elif who != "anybody":
            answer = await house.http.request(method, filled(path), headers=headers)
            assert (answer.status_code == 403) != own, f"{route} got {answer.status_code}"


async def test_a_share_dies_when_it_expires_is_revoked_or_its_session_is_purged(house: Server) -> None:
    session = await house.new_session()
    place = f"/api/sessions/{session['id']}"

    async def sees(headers: Headers) -> bool:
        return (await house.http.get(place, headers=headers)).status_code == 200

    expiring, revoked, purged = [await guest(house, session["id"], expiresIn=s) for s in (1, 60, 60)]
    async with asyncio.timeout(30):
        while await sees(expiring):
            await asyncio.sleep(0.05)
    tokens = (await house.call("GET", "/api/tokens"))["tokens"]
    mine = [each for each in tokens if each["sessionId"] == session["id"] and each["kind"] == "share"]
    assert len(mine) == 3
    await house.call("DELETE", f"/api/tokens/{mine[1]['id']}", 204)
    assert (await sees(revoked), await sees(purged)) == (False, True)
    await house.call("DELETE", f"{place}?purge=true")
    answer = await house.http.get("/api/sessions", headers=purged)
    assert answer.status_code == 401


async def test_a_guest_can_order_nothing_over_a_socket(house: Server) -> None:
    session = await house.new_session()
    async with house.socket(f"/ws/session/{session['id']}", headers=await guest(house, session["id"])) as ws:
        await ws.send('{"type": "prompt", "id": "1", "text": "x", "promptId": "p"}')
        assert '"forbidden"' in str(await ws.recv())


@pytest.mark.parametrize(
    "path",
    [
        "//api/sessions",
        "/API/sessions",
        "/./api/sessions",
        "/x/../api/sessions",
        "/%61pi/sessions",
        "/api%2Fsessions",
    ],
)
async def test_no_other_spelling_of_a_path_gets_round_the_gate(house: Server, path: str) -> None:
    reader = await asyncio.to_thread(_raw_get, house, path)
    assert reader.split()[1] in ("401", "404"), reader[:100]
    assert '"sessions"' not in reader


def _raw_get(server: Server, path: str) -> str:
    """As it stands: a client would tidy the path up."""
    with socket.create_connection(("127.0.0.1", server.port), 60) as connection:
        request = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nConnection: close\r\n\r\n"
        connection.sendall(request.encode())
        return connection.makefile("rb").read().decode(errors="replace")
