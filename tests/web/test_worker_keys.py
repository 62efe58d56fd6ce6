"""The key of a terminal agent reports the activity of its own worker, and gives no other access."""

import asyncio

import pytest
from fastapi.routing import APIRoute
from websockets.exceptions import InvalidStatus

from bullpen.web.app import every_route
from support.server import Server
from support.tui_session_client import TuiSessionClient, define_tui
from web.clients import bearer_headers, environment_of
from web.test_access_matrix import with_unknown_ids


async def report(server: Server, worker_id: str, token: str, activity: str = "asking") -> int:
    answer = await server.http.post(
        f"/api/workers/{worker_id}/activity", json={"activity": activity}, headers=bearer_headers(token)
    )
    return answer.status_code


async def test_a_worker_key_reports_the_activity_of_its_own_worker_only(server: Server) -> None:
    await define_tui(server)
    conversation, other = await asyncio.gather(TuiSessionClient.begin(server), TuiSessionClient.begin(server))
    worker, other_worker = await conversation.worker(), await other.worker()
    environment = environment_of(worker["pid"])
    token = environment["BULLPEN_ACTIVITY_TOKEN"]
    assert environment["BULLPEN_ACTIVITY_URL"] == f"{server.url}/api/workers/{worker['id']}/activity"
    assert await report(server, worker["id"], token) == 204
    activity = await conversation.wait_for_activity("asking")
    assert activity["data"]["why"] == "it says so"
    assert await report(server, other_worker["id"], token) == 403
    assert "asking" not in await other.activities()


async def test_a_worker_key_opens_no_other_route_and_no_socket(server: Server) -> None:
    await define_tui(server)
    conversation = await TuiSessionClient.begin(server)
    headers = bearer_headers(environment_of((await conversation.worker())["pid"])["BULLPEN_ACTIVITY_TOKEN"])
    for route in every_route():
        if isinstance(route, APIRoute) and route.path.startswith(("/api", "/metrics")):
            for method in route.methods or ():
                path = with_unknown_ids(route.path.replace("{session_id}", conversation.id))
                if path not in ("/api/health", "/api/login"):
                    status = (await server.http.request(method, path, headers=headers)).status_code
                    assert status == 403, f"{method} {path} got {status}"
    for path in ("/ws/dashboard", f"/ws/session/{conversation.id}"):
        with pytest.raises(InvalidStatus):
            async with server.socket(path, headers=headers):
                pass


async def test_a_forged_worker_key_is_refused(server: Server) -> None:
    await define_tui(server)
    conversation = await TuiSessionClient.begin(server)
    worker = await conversation.worker()
    token = environment_of(worker["pid"])["BULLPEN_ACTIVITY_TOKEN"]
    mac, id, run = token.split(".")
    for forged in (f"{mac}.{id}.2", f"{mac}x.{id}.{run}", mac, "bpw_", "bpw_..", f"bpw_{id}.{id}.1"):
        assert await report(server, worker["id"], forged) == 401, forged
    assert await report(server, worker["id"], token) == 204


async def test_the_worker_key_of_an_ended_run_is_refused(server: Server) -> None:
    await define_tui(server)
    conversation = await TuiSessionClient.begin(server)
    worker = await conversation.worker()
    token = environment_of(worker["pid"])["BULLPEN_ACTIVITY_TOKEN"]
    await server.call("POST", f"{conversation.path}/restart", 200, json={})
    assert await report(server, worker["id"], token) == 409
    restarted = await conversation.server.worker_in(conversation.id, worker["id"], "active")
    assert restarted["run"] == 2
    assert await report(server, worker["id"], token) == 409
    assert (
        await report(server, worker["id"], environment_of(restarted["pid"])["BULLPEN_ACTIVITY_TOKEN"]) == 204
    )


async def test_a_shell_has_no_worker_key_and_no_activity(server: Server) -> None:
    session = await server.new_session()
    terminal = await server.new_terminal(session["id"])
    assert not any(name.startswith("BULLPEN_ACTIVITY") for name in environment_of(terminal["pid"]))
    assert await report(server, terminal["id"], server.token) == 409
    assert await report(server, "00000000-0000-4000-8000-000000000000", server.token) == 404
