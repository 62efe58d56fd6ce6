"""The token of an agent answers no permission, sees no sessions of others, and cannot raise its scope."""

import json
from typing import Any

import pytest
from fastapi.routing import APIRoute, APIWebSocketRoute
from websockets.exceptions import InvalidStatus

from bullpen.web.app import every_route
from support.server import Server
from support.session_client import SessionClient, define_scripted
from web.clients import Headers, bearer_headers, environment_of, new_token_headers
from web.test_access_matrix import with_unknown_ids

# The routes that a delegate may use, and only for sessions that it started.
DELEGATE_ROUTES = {
    "GET /api/agents",
    "GET /api/sessions",
    "POST /api/sessions",
    "GET /api/sessions/{session_id}",
    "GET /api/sessions/{session_id}/events",
    "GET /api/sessions/{session_id}/messages",
    "POST /api/sessions/{session_id}/prompt",
    "GET /api/sessions/{session_id}/queue",
    "POST /api/sessions/{session_id}/cancel",
}
PUBLIC_PATHS = ("/api/health", "/api/login")


async def worker_key_headers(conversation: SessionClient) -> Headers:
    """Return headers with the key of the session's only worker."""
    [worker] = (await conversation.server.call("GET", f"{conversation.path}/workers"))["workers"]
    return bearer_headers(environment_of(worker["pid"])["BULLPEN_ACTIVITY_TOKEN"])


async def status(server: Server, method: str, path: str, headers: Headers, **more: Any) -> int:
    return (await server.http.request(method, path, headers=headers, **more)).status_code


def audit_entries(server: Server) -> list[tuple[str, str, int]]:
    lines = (server.home / "logs" / "audit.log").read_text().splitlines()
    return [
        (each["method"], each["path"], each["status"]) for each in map(json.loads, lines) if "path" in each
    ]


@pytest.mark.parametrize("kind", ["the key of the worker", "the token of a delegate"])
async def test_an_agent_cannot_approve_its_own_request(server: Server, kind: str) -> None:
    await define_scripted(server)
    delegate = await new_token_headers(server, "delegate")
    body = {"type": "quick", "locationPath": str(server.workspace), "agentId": "scripted"}
    session = await server.http.post("/api/sessions", json=body, headers=delegate)
    conversation = SessionClient(server, session.json())
    await conversation.prompt("[[permission]]")
    permission = await conversation.open_permission()
    headers = delegate if kind == "the token of a delegate" else await worker_key_headers(conversation)
    path = f"{conversation.path}/permissions/{permission['id']}"
    assert await status(server, "POST", path, headers, json={"optionId": "yes"}) == 403
    assert ("POST", path, 403) in audit_entries(server)
    assert (await conversation.open_permission())["id"] == permission["id"]


@pytest.mark.parametrize("kind", ["the key of the worker", "the token of a delegate"])
async def test_an_agent_cannot_raise_its_scope(server: Server, kind: str) -> None:
    await define_scripted(server)
    conversation = await SessionClient.begin(server)
    headers = (
        await worker_key_headers(conversation)
        if kind == "the key of the worker"
        else await new_token_headers(server, "delegate")
    )
    for path, body in (
        ("/api/tokens", {"name": "more", "scope": "admin"}),
        ("/api/login-codes", {"scope": "admin"}),
        ("/api/tokens/rotate", {}),
        ("/api/rules", {"name": "all", "agentId": "scripted", "kind": "read", "answer": "allow"}),
    ):
        assert await status(server, "POST", path, headers, json=body) == 403, path
        assert ("POST", path, 403) in audit_entries(server)


async def test_a_worker_key_neither_creates_nor_reads_sessions(server: Server) -> None:
    await define_scripted(server)
    conversation = await SessionClient.begin(server)
    headers = await worker_key_headers(conversation)
    body = {"type": "quick", "locationPath": str(server.workspace)}
    assert await status(server, "POST", "/api/sessions", headers, json=body) == 403
    assert ("POST", "/api/sessions", 403) in audit_entries(server)
    assert await status(server, "GET", "/api/sessions", headers) == 403
    assert await status(server, "GET", conversation.path, headers) == 403


async def test_a_delegate_sees_and_prompts_only_the_sessions_that_it_started(server: Server) -> None:
    await define_scripted(server)
    delegate, other_delegate = (
        await new_token_headers(server, "delegate"),
        await new_token_headers(server, "delegate"),
    )
    body = {"type": "quick", "locationPath": str(server.workspace), "agentId": "scripted", "title": "mine"}
    own = (await server.http.post("/api/sessions", json=body, headers=delegate)).json()
    of_user = await SessionClient.begin(server, title="of the user")
    for path in (f"/api/sessions/{own['id']}", f"/api/sessions/{own['id']}/messages"):
        assert await status(server, "GET", path, delegate) == 200
        assert await status(server, "GET", path, other_delegate) == 403
    listed = (await server.http.get("/api/sessions", headers=delegate)).json()
    assert [each["title"] for each in listed["sessions"]] == ["mine"]
    assert (await server.http.get("/api/sessions", headers=other_delegate)).json()["total"] == 0
    prompt = {"text": "hello", "promptId": "one"}
    assert await status(server, "POST", f"/api/sessions/{own['id']}/prompt", delegate, json=prompt) == 202
    assert await status(server, "POST", f"{of_user.path}/prompt", delegate, json=prompt) == 403
    assert ("POST", f"{of_user.path}/prompt", 403) in audit_entries(server)


async def test_a_delegate_may_use_certain_routes_and_only_for_its_own_sessions(server: Server) -> None:
    await define_scripted(server)
    of_user = await SessionClient.begin(server)
    headers = await new_token_headers(server, "delegate")
    body = {"type": "quick", "locationPath": str(server.workspace), "agentId": "scripted"}
    own = (await server.http.post("/api/sessions", json=body, headers=headers)).json()
    allowed = {"of the user": set[str](), "own": set[str]()}
    for route in every_route():
        if not isinstance(route, APIRoute) or not route.path.startswith(("/api", "/metrics")):
            continue
        for method in (route.methods or set()) if route.path not in PUBLIC_PATHS else ():
            for kind, session_id in (("of the user", of_user.id), ("own", own["id"])):
                path = with_unknown_ids(route.path.replace("{session_id}", session_id))
                if await status(server, method, path, headers) != 403:
                    allowed[kind].add(f"{method} {route.path}")
    assert allowed["own"] == DELEGATE_ROUTES
    assert allowed["of the user"] == {name for name in DELEGATE_ROUTES if "{session_id}" not in name}


async def test_every_socket_of_other_sessions_is_refused_to_a_delegate(server: Server) -> None:
    session = await server.new_session()
    headers = await new_token_headers(server, "delegate")
    sockets = [route.path for route in every_route() if isinstance(route, APIWebSocketRoute)]
    assert sockets
    for path in sockets:
        with pytest.raises(InvalidStatus) as refused:
            async with server.socket(
                with_unknown_ids(path.replace("{session_id}", session["id"])), headers=headers
            ):
                pass
        assert refused.value.response.status_code == 403, path


async def test_a_delegate_follows_its_session_over_a_socket_but_sends_no_orders(server: Server) -> None:
    await define_scripted(server)
    headers = await new_token_headers(server, "delegate")
    body = {"type": "quick", "locationPath": str(server.workspace), "agentId": "scripted"}
    session = (await server.http.post("/api/sessions", json=body, headers=headers)).json()
    async with server.socket(f"/ws/session/{session['id']}", headers=headers) as socket:
        await socket.send(json.dumps({"type": "subscribe", "after": 0}))
        await socket.send(json.dumps({"type": "cancel", "id": "1"}))
        async for text in socket:
            message = json.loads(text)
            if message["type"] == "error":
                assert message["error"] == "forbidden"
                break


async def start_continuing_session(server: Server, headers: Headers, agent_id: str) -> SessionClient:
    """Start a session that continues the last conversation in its directory."""
    quick = {"type": "quick", "locationPath": str(server.workspace)}
    body = {**quick, "agentId": agent_id, "continueConversation": True}
    session = await server.http.post("/api/sessions", json=body, headers=headers)
    assert session.status_code == 201, session.text
    return SessionClient(server, session.json())


async def test_a_delegate_continues_its_own_conversation_and_no_other(server: Server) -> None:
    await define_scripted(server)
    of_user = await SessionClient.begin(server)
    delegate, other_delegate = (
        await new_token_headers(server, "delegate"),
        await new_token_headers(server, "delegate"),
    )
    known = {(await of_user.wait_for_event("agent_session"))["data"]["acpSessionId"]}
    for headers in (delegate, other_delegate):
        started = await (await start_continuing_session(server, headers, "scripted")).wait_for_event(
            "agent_session"
        )
        assert started["data"]["how"] == "new"
        known.add(started["data"]["acpSessionId"])
        if headers is delegate:
            own = started["data"]["acpSessionId"]
    assert len(known) == 3
    continued = await (await start_continuing_session(server, delegate, "scripted")).wait_for_event(
        "agent_session"
    )
    assert (continued["data"]["how"], continued["data"]["acpSessionId"]) == ("continue", own)


async def test_a_delegate_does_not_continue_with_an_agent_that_takes_the_last_conversation(
    server: Server,
) -> None:
    """`--continue` of a terminal agent continues the directory's last conversation, even a user's."""
    command = ["/bin/sh", "-c", "echo $0; exec cat"]
    more = {"command": [*command, "anew"], "continueCommand": [*command, "again"]}
    await server.call("PUT", "/api/agents/last", 200, json={"name": "Last", "kind": "pty", **more})
    delegate = await new_token_headers(server, "delegate")
    for _ in range(2):
        conversation = await start_continuing_session(server, delegate, "last")
        worker = (await conversation.server.call("GET", f"{conversation.path}/workers"))["workers"][0]
        await server.worker_in(conversation.id, worker["id"], "active")
        events = await conversation.events()
        assert [each["data"]["how"] for each in events if each["type"] == "agent_session"] in ([], ["new"])
    of_user = SessionClient(server, await server.new_session(agentId="last", continueConversation=True))
    await of_user.wait_for_event("agent_session", how="continue")
