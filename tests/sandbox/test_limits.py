"""Sandboxed runs that use too much are ended with a reason, and nothing else is."""

import asyncio
import sys

import pytest

from support.limited_server import (
    HAS_GROUPS,
    LIMITS,
    OFFENDER,
    REASONS,
    left_behind,
    offend,
    start_limited,
)
from support.repositories import Repo
from support.scripted_agent.command import scripted_command
from support.server import Server, has_ended
from support.session_client import SessionClient, define_scripted

pytestmark = pytest.mark.intervals(limit_check=0.1)
BY = ["groups", "server"] if HAS_GROUPS else ["server"]


async def nothing_left(server: Server, worker_id: str) -> None:
    async with asyncio.timeout(30):
        while left_behind(server, worker_id):
            await asyncio.sleep(0.02)


@pytest.mark.parametrize("what", REASONS)
@pytest.mark.parametrize("enforced_by", BY)
async def test_a_run_that_uses_too_much_is_ended_and_its_session_goes_on(
    server: Server, enforced_by: str, what: str
) -> None:
    await start_limited(server, enforced_by)
    await define_scripted(server)
    client = await SessionClient.begin(server)
    offender = await offend(server, client.id, what)
    failed = await client.wait_for_event("worker_failed")
    assert (failed["workerId"], failed["data"]["error"]) == (offender, REASONS[what])
    worker = await server.worker_in(client.id, offender, "failed")
    assert worker["error"] == REASONS[what]
    await nothing_left(server, offender)
    await client.run_turn("[[chunk hello]]")
    assert await client.agent_text() == "hello"
    assert [each["type"] for each in await client.events()].count("worker_failed") == 1


@pytest.mark.parametrize("enforced_by", BY)
async def test_an_agent_that_uses_too_much_fails_with_its_turn_and_other_sessions_go_on(
    server: Server, enforced_by: str
) -> None:
    await start_limited(server, enforced_by)
    await define_scripted(server)
    journal = server.home.parent / "hog.journal"
    script = f'(until [ -e go ]; do sleep 0.05; done; exec {sys.executable} {OFFENDER} memory) & exec "$@"'
    agent = scripted_command(journal)
    body = {"name": "Hog", "kind": "acp", "command": ["bash", "-c", script, "bash", *agent]}
    await server.call("PUT", "/api/agents/hog", 200, json=body | {"state": [f"{journal.parent}/"]})
    other = await SessionClient.begin(server)
    client = await SessionClient.begin(server, "hog")
    await client.prompt("[[sleep 60]]")
    await client.wait_for_event("turn_start")
    turn = asyncio.ensure_future(other.run_turn("[[stream n=50 delay=0.02]]"))
    (server.workspace / "go").touch()
    failed = await client.wait_for_event("worker_failed")
    assert failed["data"]["error"] == REASONS["memory"]
    ended = await client.wait_for_event("turn_end")
    assert (ended["data"]["stopReason"], ended["data"]["error"]) == ("error", REASONS["memory"])
    assert (await turn)["data"]["stopReason"] == "end_turn"
    items = (await server.call("GET", "/api/inbox"))["items"]
    assert [each["text"] for each in items if each["sessionId"] == client.id] == [REASONS["memory"]]
    await nothing_left(server, failed["workerId"])


@pytest.mark.parametrize("what", ["memory", "processes"])
async def test_under_landlock_too_a_run_that_uses_too_much_is_ended(server: Server, what: str) -> None:
    programs = server.workspace / "bin"
    programs.mkdir()
    for name in ("sh", "env"):
        (programs / name).symlink_to(f"/usr/bin/{name}")
    server.set(PATH=str(programs))
    await start_limited(server, "server")
    session = await server.new_session()
    offender = await offend(server, session["id"], what)
    assert (await server.worker_in(session["id"], offender, "failed"))["error"] == REASONS[what]
    await nothing_left(server, offender)


async def start_waiting(server: Server) -> tuple[str, str]:
    """Start a run that uses too much memory once there is a file `go`; return session and worker."""
    session = await server.new_session()
    script = f"until [ -e go ]; do sleep 0.05; done; exec {sys.executable} {OFFENDER} memory"
    body = {"type": "terminal", "command": ["bash", "-c", script], "sandbox": "workspace"}
    worker = await server.call("POST", f"/api/sessions/{session['id']}/workers", 201, json=body)
    await server.worker_in(session["id"], worker["id"], "active")
    return session["id"], worker["id"]


@pytest.mark.parametrize("enforced_by", BY)
async def test_the_limits_hold_after_the_server_was_killed(server: Server, enforced_by: str) -> None:
    await start_limited(server, enforced_by)
    session_id, worker_id = await start_waiting(server)
    await start_limited(server, enforced_by)
    (server.workspace / "go").touch()
    assert (await server.worker_in(session_id, worker_id, "failed"))["error"] == REASONS["memory"]
    await nothing_left(server, worker_id)


async def test_a_run_that_joined_no_group_is_watched_by_the_server(server: Server) -> None:
    await start_limited(server, "server")
    session_id, worker_id = await start_waiting(server)
    await start_limited(server, "groups")
    (server.workspace / "go").touch()
    assert (await server.worker_in(session_id, worker_id, "failed"))["error"] == REASONS["memory"]


if HAS_GROUPS:

    async def test_the_kernel_ends_a_run_while_no_server_runs_and_the_next_server_records_why(
        server: Server,
    ) -> None:
        await start_limited(server, "groups")
        session_id, worker_id = await start_waiting(server)
        pid = (await server.worker_in(session_id, worker_id, "active"))["pid"]
        await server.kill()
        (server.workspace / "go").touch()
        async with asyncio.timeout(30):
            while not has_ended(pid):
                await asyncio.sleep(0.02)
        await server.start()
        assert (await server.worker_in(session_id, worker_id, "failed"))["error"] == REASONS["memory"]

    async def test_the_setup_command_of_a_repository_is_limited(server: Server) -> None:
        await start_limited(server, "groups")
        repository = Repo(server.workspace / "site")
        registered = await server.call("POST", "/api/repositories", 201, json={"path": str(repository.path)})
        path = f"/api/repositories/{registered['id']}"
        await server.call("PATCH", path, 200, json={"setup": f"{sys.executable} {OFFENDER} memory"})
        failed = await server.call("POST", f"{path}/worktrees", 409, json={"branch": "feature"})
        assert "setup command ended with code 137" in failed["message"]


async def test_variables_with_odd_names_reach_a_sandboxed_program(server: Server) -> None:
    await start_limited(server, "groups")
    await define_scripted(server)
    body = {"name": "Odd", "kind": "pty", "command": ["env"], "env": {"npm_config_//example/:_token": "odd"}}
    await server.call("PUT", "/api/agents/odd", 200, json=body)
    session = await server.new_session(agentId="odd")
    worker = session["workers"][0]["id"]
    await server.worker_in(session["id"], worker, "exited")
    answer = await server.http.get(f"/api/sessions/{session['id']}/workers/{worker}/output")
    assert "npm_config_//example/:_token=odd" in answer.text


async def test_without_limits_none_is_shown_as_enforced(server: Server) -> None:
    server.set(**dict.fromkeys(LIMITS, "0"))
    await server.restart()
    limits = (await server.call("GET", "/api/sandbox"))["limits"]
    assert [(each["value"], each["enforcedBy"]) for each in limits] == [(0, "")] * 3
    session = await server.new_session()
    body = {"type": "terminal", "command": ["true"], "sandbox": "workspace"}
    worker = await server.call("POST", f"/api/sessions/{session['id']}/workers", 201, json=body)
    await server.worker_in(session["id"], worker["id"], "exited")
