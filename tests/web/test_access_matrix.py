"""Request every route with every method, and every socket, with every kind of credential."""

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
from web.clients import SCOPES, Headers, bearer_headers, log_in, new_token_headers

pytestmark = pytest.mark.asyncio(loop_scope="session")

# The scope that each route requires. A route that is missing here fails a test.
REQUIRED_SCOPE = {
    "GET /": "public",
    "GET /{path:path}": "public",
    "GET /api/health": "public",
    "POST /api/login": "public",
    "POST /api/login-codes": "admin",
    "GET /api/tokens": "admin",
    "POST /api/tokens": "admin",
    "POST /api/tokens/rotate": "admin",
    "DELETE /api/tokens/{token_id}": "admin",
    "GET /api/sandbox": "view",
    "GET /api/sessions/{session_id}/workers/{worker_id}/sandbox": "operate",
    "GET /api/sandbox/grants": "admin",
    "PUT /api/sandbox/grants": "admin",
    "DELETE /api/sandbox/grants/{grant_id}": "admin",
    "GET /api/roots": "admin",
    "POST /api/roots": "admin",
    "DELETE /api/roots": "admin",
    "GET /api/directories": "admin",
    "GET /api/directories/repositories": "admin",
    "POST /api/clones": "admin",
    "GET /api/clones/{clone_id}": "admin",
    "DELETE /api/clones/{clone_id}": "admin",
    "GET /api/settings": "admin",
    "PATCH /api/settings": "admin",
    "GET /metrics": "admin",
    "GET /api/openapi.json": "view",
    "GET /api/repositories": "view",
    "POST /api/repositories": "operate",
    "GET /api/repositories/{repo_id}": "view",
    "GET /api/repositories/{repo_id}/branches": "view",
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
    "GET /api/import": "admin",
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
    "POST /api/sessions/{session_id}/reopen": "operate",
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
    "GET /api/sessions/{session_id}/file-names": "view",
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
    # For worker keys and delegates see test_worker_keys.py and test_delegates.py
    "POST /api/workers/{worker_id}/activity": "operate",
    "POST /api/workers/{worker_id}/questions": "operate",
    "GET /api/workers/{worker_id}/questions/{question_id}": "operate",
    "WS /ws/dashboard": "view",
    "WS /ws/relay": "view",
    "WS /ws/session/{session_id}": "view",
    "WS /ws/session/{session_id}/worker/{worker_id}": "view",
}
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
# These credentials are tried with every method; the others only with the methods of a route.
TRIED_WITH_EVERY_METHOD = (
    "nothing",
    "garbage",
    "an expired token",
    "view token",
    "operate token",
    "admin token",
)
# A guest sees what happened in the session, but neither files nor programs.
NOT_FOR_GUESTS = (
    "GET /api/sessions/{session_id}/diff",
    "GET /api/sessions/{session_id}/files",
    "GET /api/sessions/{session_id}/files/{path:path}",
    "GET /api/sessions/{session_id}/file-names",
    "GET /api/sessions/{session_id}/ports",
)
SHARE = "a share of another session"
UNKNOWN_ID = "00000000-0000-4000-8000-000000000000"
# An invalid idempotency key: the server refuses the request after the gate and before any effect.
NO_EFFECT = {"Idempotency-Key": "x" * 201}


class Credential(NamedTuple):
    name: str
    headers: Headers
    scope: str | None  # None: it gives no access

    @property
    def is_recognised(self) -> bool:
        """Whether the server recognises the credential, even if its access is not sufficient."""
        return self.scope is not None or "a real cookie" in self.name or self.name == SHARE

    def allows(self, required: str) -> bool:
        if required == "public" and self.name == SHARE:
            return True
        if required == "public":
            # An invalid token is refused even on a route that needs none.
            return self.scope is not None or "Authorization" not in self.headers
        return self.scope is not None and SCOPES.index(self.scope) >= SCOPES.index(required)


async def expired_token_headers(server: Server) -> Headers:
    headers = await new_token_headers(server, "admin", expiresIn=1)
    async with asyncio.timeout(60):
        while (await server.http.get("/api/sessions", headers=headers)).status_code != 401:
            await asyncio.sleep(0.05)
    return headers


async def guest_headers(server: Server, session_id: str, **body: Any) -> Headers:
    """Return the headers of a client that has the share of one session."""
    share = await server.call("POST", f"/api/sessions/{session_id}/share", 201, json=body)
    return bearer_headers(share["token"])


async def credentials(server: Server) -> list[Credential]:
    browsers = {scope: await log_in(server, scope) for scope in SCOPES}
    wrong_secret = {**browsers["admin"].cookie, "X-Bullpen-Secret": browsers["view"].secret}
    as_bearer = bearer_headers(browsers["admin"].cookie["Cookie"].split("=", 1)[1])
    return [
        Credential("nothing", {}, None),
        Credential("garbage", bearer_headers("wrong"), None),
        Credential("an empty bearer", {"Authorization": "Bearer"}, None),
        Credential("a password", {"Authorization": "Basic dXNlcjp0b2tlbg=="}, None),
        Credential("an expired token", await expired_token_headers(server), None),
        Credential(SHARE, await guest_headers(server, (await server.new_session())["id"]), None),
        Credential("a garbage cookie", {"Cookie": "bullpen=wrong", "X-Bullpen-Secret": "wrong"}, None),
        Credential("a real cookie alone", browsers["admin"].cookie, None),
        Credential("a real cookie with another's secret", wrong_secret, None),
        Credential("a cookie as bearer", as_bearer, None),
        *[Credential(f"{scope} token", await new_token_headers(server, scope), scope) for scope in SCOPES],
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


def with_unknown_ids(path: str) -> str:
    """Return a path in which each placeholder is replaced by an id that does not exist."""
    return re.sub(r"\{\w+\}", UNKNOWN_ID, path.replace("{path:path}", "nothing-here"))


async def test_the_table_has_every_route_and_no_other() -> None:
    assert routes() == set(REQUIRED_SCOPE)


async def test_every_route_and_method_is_open_exactly_to_the_required_scopes(shared_server: Server) -> None:
    paths = sorted({route.split()[1] for route in REQUIRED_SCOPE if not route.startswith("WS")})
    known_credentials = await credentials(shared_server)
    tokens = [credential for credential in known_credentials if credential.name in TRIED_WITH_EVERY_METHOD]
    requests = list(itertools.product(METHODS, paths, tokens))
    requests += [
        (method, path, credential)
        for method, path in map(str.split, REQUIRED_SCOPE)
        for credential in known_credentials
        if method != "WS"
    ]
    statuses = await asyncio.to_thread(_statuses, shared_server, requests)
    for (method, path, credential), status in zip(requests, statuses, strict=True):
        _check(method, path, credential, status)


def _statuses(server: Server, requests: list[tuple[str, str, Credential]]) -> list[int]:
    """Send all requests over one connection of the standard library, because there are thousands."""
    connection = HTTPConnection("127.0.0.1", server.port, timeout=30)
    statuses = []
    for method, path, credential in requests:
        connection.request(method, with_unknown_ids(path), headers={**credential.headers, **NO_EFFECT})
        with connection.getresponse() as answer:
            answer.read()
            statuses.append(answer.status)
    connection.close()
    return statuses


def _check(method: str, path: str, credential: Credential, status: int) -> None:
    message = f"{method} {path} with {credential.name} got {status}"
    required = _required_scope(method, path)
    if required is None and credential.scope:
        assert status in (404, 405), message  # only a valid credential learns that the route does not exist
    elif required and credential.allows(required):
        assert status in (200, 400, 404) or (method, status) == ("HEAD", 405), message
    else:
        assert status == (403 if credential.is_recognised else 401), message


def _required_scope(method: str, path: str) -> str | None:
    """Return the scope of the route that handles the request: `rotate` could be the id of a token."""
    if method == "HEAD" and REQUIRED_SCOPE.get(f"GET {path}") == "public":
        return "public"
    matching = (
        route
        for route in REQUIRED_SCOPE
        if re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", route), f"{method} {path}")
    )
    return REQUIRED_SCOPE.get(f"{method} {path}") or REQUIRED_SCOPE.get(next(matching, ""))


async def test_every_socket_is_open_exactly_to_the_required_scopes(shared_server: Server) -> None:
    for route, credential in itertools.product(REQUIRED_SCOPE, await credentials(shared_server)):
        if not route.startswith("WS") or "Cookie" in credential.headers:
            continue  # test_host_and_origin.py tests sockets with a cookie
        opened = await _socket_opens(shared_server, with_unknown_ids(route.split()[1]), credential.headers)
        assert opened == credential.allows(REQUIRED_SCOPE[route]), f"{route} with {credential.name}"


async def _socket_opens(server: Server, path: str, headers: Headers) -> bool:
    try:
        async with server.socket(path, headers={"Authorization": "", **headers}):
            return True
    except InvalidStatus as refused:
        assert refused.response.status_code in (401, 403)
        return False


async def test_a_share_opens_the_read_routes_of_its_session_and_no_other(shared_server: Server) -> None:
    session = await shared_server.new_session()
    worker = await shared_server.new_terminal(session["id"])
    headers = await guest_headers(shared_server, session["id"])
    for route, required in REQUIRED_SCOPE.items():
        method, path = route.split()
        path = path.replace("{session_id}", session["id"]).replace("{worker_id}", worker["id"])
        own = (
            "{session_id}" in route
            and required == "view"
            and method in ("GET", "WS")
            and route not in NOT_FOR_GUESTS
        )
        if method == "WS":
            assert await _socket_opens(shared_server, with_unknown_ids(path), headers) == own, route
        elif required != "public":
            answer = await shared_server.http.request(method, with_unknown_ids(path), headers=headers)
            assert (answer.status_code == 403) != own, f"{route} got {answer.status_code}"


async def test_a_share_ends_when_it_expires_is_revoked_or_its_session_is_purged(
    shared_server: Server,
) -> None:
    session = await shared_server.new_session()
    path = f"/api/sessions/{session['id']}"

    async def can_read(headers: Headers) -> bool:
        return (await shared_server.http.get(path, headers=headers)).status_code == 200

    expiring, revoked, purged = [
        await guest_headers(shared_server, session["id"], expiresIn=s) for s in (1, 60, 60)
    ]
    async with asyncio.timeout(30):
        while await can_read(expiring):
            await asyncio.sleep(0.05)
    tokens = (await shared_server.call("GET", "/api/tokens"))["tokens"]
    shares = [each for each in tokens if each["sessionId"] == session["id"] and each["kind"] == "share"]
    assert len(shares) == 3
    await shared_server.call("DELETE", f"/api/tokens/{shares[1]['id']}", 204)
    assert (await can_read(revoked), await can_read(purged)) == (False, True)
    await shared_server.call("DELETE", f"{path}?purge=true")
    answer = await shared_server.http.get("/api/sessions", headers=purged)
    assert answer.status_code == 401


async def test_a_guest_can_send_no_order_over_a_socket(shared_server: Server) -> None:
    session = await shared_server.new_session()
    async with shared_server.socket(
        f"/ws/session/{session['id']}", headers=await guest_headers(shared_server, session["id"])
    ) as ws:
        await ws.send('{"type": "prompt", "id": "1", "text": "x", "promptId": "p"}')
        assert '"heartbeat"' in str(await ws.recv())
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
async def test_no_other_spelling_of_a_path_bypasses_the_gate(shared_server: Server, path: str) -> None:
    response = await asyncio.to_thread(_raw_get, shared_server, path)
    assert response.split()[1] in ("401", "404"), response[:100]
    assert '"sessions"' not in response


def _raw_get(server: Server, path: str) -> str:
    """Request the path unchanged; an HTTP client would normalise it."""
    with socket.create_connection(("127.0.0.1", server.port), 60) as connection:
        request = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nConnection: close\r\n\r\n"
        connection.sendall(request.encode())
        return connection.makefile("rb").read().decode(errors="replace")
