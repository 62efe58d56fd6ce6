"""S-01 for the key of an agent in a terminal: it says what the worker itself does, and opens nothing else."""

import asyncio

import pytest
from fastapi.routing import APIRoute
from websockets.exceptions import InvalidStatus

from bullpen.web.app import every_route
from support.server import Server
from support.tui_session_client import TuiSessionClient, define_tui
from web.people import bearing, environment_of
from web.test_matrix import filled


async def report(server: Server, worker_id: str, token: str, activity: str = "asking") -> int:
    answer = await server.http.post(
        f"/api/workers/{worker_id}/activity", json={"activity": activity}, headers=bearing(token)
    )
    return answer.status_code


async def test_a_worker_speaks_with_its_own_key_for_itself_and_for_nobody_else(server: Server) -> None:
    await define_tui(server)
    talk, other = await asyncio.gather(TuiSessionClient.begin(server), TuiSessionClient.begin(server))
    worker, stranger = await talk.worker(), await other.worker()
    given = environment_of(worker["pid"])
    token = given["BULLPEN_ACTIVITY_TOKEN"]
    assert given["BULLPEN_ACTIVITY_URL"] == f"{server.url}/api/workers/{worker['id']}/activity"
    assert await report(server, worker["id"], token) == 204
    told = await talk.wait_for_activity("asking")
    assert told["data"]["why"] == "it says so"
    assert await report(server, stranger["id"], token) == 403
    assert "asking" not in await other.activities()


async def test_a_worker_s_key_opens_no_other_route_and_no_socket(server: Server) -> None:
    await define_tui(server)
    talk = await TuiSessionClient.begin(server)
    headers = bearing(environment_of((await talk.worker())["pid"])["BULLPEN_ACTIVITY_TOKEN"])
    for route in every_route():
        if isinstance(route, APIRoute) and route.path.startswith(("/api", "/metrics")):
            for method in route.methods or ():
                path = filled(route.path.replace("{session_id}", talk.id))
                if path not in ("/api/health", "/api/login"):
                    status = (await server.http.request(method, path, headers=headers)).status_code
                    assert status == 403, f"{method} {path} got {status}"
    for path in ("/ws/dashboard", f"/ws/session/{talk.id}"):
        with pytest.raises(InvalidStatus):
            async with server.socket(path, headers=headers):
                pass


async def test_a_key_that_was_changed_or_made_up_is_refused(server: Server) -> None:
    await define_tui(server)
    talk = await TuiSessionClient.begin(server)
    worker = await talk.worker()
    token = environment_of(worker["pid"])["BULLPEN_ACTIVITY_TOKEN"]
    mac, id, run = token.split(".")
    for wrong in (f"{mac}.{id}.2", f"{mac}x.{id}.{run}", mac, "bpw_", "bpw_..", f"bpw_{id}.{id}.1"):
        assert await report(server, worker["id"], wrong) == 401, wrong
    assert await report(server, worker["id"], token) == 204


async def test_the_key_of_a_run_that_is_over_says_nothing_any_more(server: Server) -> None:
    await define_tui(server)
    talk = await TuiSessionClient.begin(server)
    worker = await talk.worker()
    token = environment_of(worker["pid"])["BULLPEN_ACTIVITY_TOKEN"]
    await server.call("POST", f"{talk.path}/restart", 200, json={})
    assert await report(server, worker["id"], token) == 409
    again = await talk.server.worker_in(talk.id, worker["id"], "active")
    assert again["run"] == 2
    assert await report(server, worker["id"], token) == 409
    assert await report(server, worker["id"], environment_of(again["pid"])["BULLPEN_ACTIVITY_TOKEN"]) == 204


async def test_a_shell_has_no_key_and_no_activity(server: Server) -> None:
    session = await server.new_session()
    shell = await server.new_terminal(session["id"])
    assert not any(name.startswith("BULLPEN_ACTIVITY") for name in environment_of(shell["pid"]))
    assert await report(server, shell["id"], server.token) == 409
    assert await report(server, "00000000-0000-4000-8000-000000000000", server.token) == 404
