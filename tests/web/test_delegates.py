"""S-07: what an agent's token cannot do: answer for people, see others' sessions, raise itself."""

import json
from typing import Any

import pytest
from fastapi.routing import APIRoute, APIWebSocketRoute
from websockets.exceptions import InvalidStatus

from bullpen.web.app import every_route
from support.server import Server
from support.session_client import SessionClient, define_scripted
from web.people import Headers, bearer, bearing, environment_of
from web.test_matrix import filled

# All it may, and only for sessions it started.
MAY = {
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


async def key_of(talk: SessionClient) -> Headers:
    [worker] = (await talk.server.call("GET", f"{talk.path}/workers"))["workers"]
    return bearing(environment_of(worker["pid"])["BULLPEN_ACTIVITY_TOKEN"])


async def status(server: Server, method: str, path: str, headers: Headers, **more: Any) -> int:
    return (await server.http.request(method, path, headers=headers, **more)).status_code


def audited(server: Server) -> list[tuple[str, str, int]]:
    lines = (server.home / "logs" / "audit.log").read_text().splitlines()
    return [
        (each["method"], each["path"], each["status"]) for each in map(json.loads, lines) if "path" in each
    ]


@pytest.mark.parametrize("whose", ["the key of its run", "a delegate's token"])
async def test_it_cannot_approve_its_own_request(server: Server, whose: str) -> None:
    await define_scripted(server)
    delegate = await bearer(server, "delegate")
    body = {"type": "quick", "locationPath": str(server.workspace), "agentId": "scripted"}
    made = await server.http.post("/api/sessions", json=body, headers=delegate)
    talk = SessionClient(server, made.json())
    await talk.prompt("[[permission]]")
    asked = await talk.open_permission()
    headers = delegate if whose == "a delegate's token" else await key_of(talk)
    path = f"{talk.path}/permissions/{asked['id']}"
    assert await status(server, "POST", path, headers, json={"optionId": "yes"}) == 403
    assert ("POST", path, 403) in audited(server)
    assert (await talk.open_permission())["id"] == asked["id"]


@pytest.mark.parametrize("whose", ["the key of its run", "a delegate's token"])
async def test_it_cannot_raise_its_scope(server: Server, whose: str) -> None:
    await define_scripted(server)
    talk = await SessionClient.begin(server)
    headers = await key_of(talk) if whose == "the key of its run" else await bearer(server, "delegate")
    for path, body in (
        ("/api/tokens", {"name": "more", "scope": "admin"}),
        ("/api/login-codes", {"scope": "admin"}),
        ("/api/tokens/rotate", {}),
        ("/api/rules", {"name": "all", "agentId": "scripted", "kind": "read", "answer": "allow"}),
    ):
        assert await status(server, "POST", path, headers, json=body) == 403, path
        assert ("POST", path, 403) in audited(server)


async def test_the_key_of_a_run_makes_and_reads_no_session(server: Server) -> None:
    await define_scripted(server)
    talk = await SessionClient.begin(server)
    headers = await key_of(talk)
    body = {"type": "quick", "locationPath": str(server.workspace)}
    assert await status(server, "POST", "/api/sessions", headers, json=body) == 403
    assert ("POST", "/api/sessions", 403) in audited(server)
    assert await status(server, "GET", "/api/sessions", headers) == 403
    assert await status(server, "GET", talk.path, headers) == 403


async def test_a_delegate_sees_and_steers_what_it_started_and_nothing_else(server: Server) -> None:
    await define_scripted(server)
    mine, others = await bearer(server, "delegate"), await bearer(server, "delegate")
    body = {"type": "quick", "locationPath": str(server.workspace), "agentId": "scripted", "title": "mine"}
    own = (await server.http.post("/api/sessions", json=body, headers=mine)).json()
    persons = await SessionClient.begin(server, title="a person's")
    for path in (f"/api/sessions/{own['id']}", f"/api/sessions/{own['id']}/messages"):
        assert await status(server, "GET", path, mine) == 200
        assert await status(server, "GET", path, others) == 403
    listed = (await server.http.get("/api/sessions", headers=mine)).json()
    assert [each["title"] for each in listed["sessions"]] == ["mine"]
    assert (await server.http.get("/api/sessions", headers=others)).json()["total"] == 0
    said = {"text": "hello", "promptId": "one"}
    assert await status(server, "POST", f"/api/sessions/{own['id']}/prompt", mine, json=said) == 202
    assert await status(server, "POST", f"{persons.path}/prompt", mine, json=said) == 403
    assert ("POST", f"{persons.path}/prompt", 403) in audited(server)


async def test_every_other_route_and_socket_is_closed_to_a_delegate(server: Server) -> None:
    await define_scripted(server)
    talk = await SessionClient.begin(server)
    headers = await bearer(server, "delegate")
    for route in every_route():
        path = filled(route.path.replace("{session_id}", talk.id))  # type: ignore[attr-defined]
        if isinstance(route, APIRoute) and route.path.startswith(("/api", "/metrics")):
            for method in route.methods or ():
                if path in ("/api/health", "/api/login"):
                    continue
                named = f"{method} {route.path}"
                if named in MAY and "{session_id}" not in named:
                    continue
                assert await status(server, method, path, headers) == 403, named
        elif isinstance(route, APIWebSocketRoute):
            with pytest.raises(InvalidStatus):
                async with server.socket(path, headers=headers):
                    pass


async def test_a_delegate_follows_what_it_started_and_orders_nothing_there(server: Server) -> None:
    await define_scripted(server)
    headers = await bearer(server, "delegate")
    body = {"type": "quick", "locationPath": str(server.workspace), "agentId": "scripted"}
    made = (await server.http.post("/api/sessions", json=body, headers=headers)).json()
    async with server.socket(f"/ws/session/{made['id']}", headers=headers) as socket:
        await socket.send(json.dumps({"type": "subscribe", "after": 0}))
        await socket.send(json.dumps({"type": "cancel", "id": "1"}))
        async for text in socket:
            message = json.loads(text)
            if message["type"] == "error":
                assert message["error"] == "forbidden"
                break


async def begun_by(server: Server, headers: Headers, agent_id: str) -> SessionClient:
    """A session that is to go back to what was last said in the directory."""
    where = {"type": "quick", "locationPath": str(server.workspace)}
    body = {**where, "agentId": agent_id, "continueConversation": True}
    made = await server.http.post("/api/sessions", json=body, headers=headers)
    assert made.status_code == 201, made.text
    return SessionClient(server, made.json())


async def test_a_delegate_goes_back_to_its_own_conversation_and_to_no_other(server: Server) -> None:
    await define_scripted(server)
    persons = await SessionClient.begin(server)
    mine, others = await bearer(server, "delegate"), await bearer(server, "delegate")
    known = {(await persons.wait_for_event("agent_session"))["data"]["acpSessionId"]}
    for headers in (mine, others):
        began = await (await begun_by(server, headers, "scripted")).wait_for_event("agent_session")
        assert began["data"]["how"] == "new"
        known.add(began["data"]["acpSessionId"])
        if headers is mine:
            own = began["data"]["acpSessionId"]
    assert len(known) == 3
    again = await (await begun_by(server, mine, "scripted")).wait_for_event("agent_session")
    assert (again["data"]["how"], again["data"]["acpSessionId"]) == ("continue", own)


async def test_a_delegate_does_not_go_back_with_an_agent_that_takes_the_last_conversation(
    server: Server,
) -> None:
    """`--continue` of an agent in a terminal means the directory's last one, whoever had it."""
    command = ["/bin/sh", "-c", "echo $0; exec cat"]
    more = {"command": [*command, "anew"], "continueCommand": [*command, "again"]}
    await server.call("PUT", "/api/agents/last", 200, json={"name": "Last", "kind": "pty", **more})
    delegate = await bearer(server, "delegate")
    for _ in range(2):
        talk = await begun_by(server, delegate, "last")
        worker = (await talk.server.call("GET", f"{talk.path}/workers"))["workers"][0]
        await server.worker_in(talk.id, worker["id"], "active")
        events = await talk.events()
        assert [each["data"]["how"] for each in events if each["type"] == "agent_session"] in ([], ["new"])
    persons = SessionClient(server, await server.new_session(agentId="last", continueConversation=True))
    await persons.wait_for_event("agent_session", how="continue")
