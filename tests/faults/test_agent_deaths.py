"""An agent, its keeper or both are killed, and a server is stopped by SIGTERM in the middle of a turn."""

import asyncio
import os
import signal
import time
from pathlib import Path

import psutil

from support.retrying_client import RetryingClient, define_scripted
from support.scripted_agent.journal import prompts_in
from support.server import Server, has_ended


def keeper_of(pid: int) -> int:
    parent = psutil.Process(pid).parent()
    assert parent is not None
    return int(parent.pid)


async def begin_turn(server: Server) -> tuple[RetryingClient, int]:
    """Return a client of an agent that has begun its answer, and the pid of the agent."""
    client = await RetryingClient.begin(server)
    await client.prompt("[[chunk begun]] [[sleep 1000]]")
    async with client.following():
        await client.until(lambda _: "begun" in client.agent_text())
    return client, client.events_of_type("worker_ready")[0]["data"]["pid"]


async def check_failure(client: RetryingClient, reason: str) -> None:
    """Check that the worker failed, its turn ended, and the session works after a restart of the agent."""
    async with client.following():
        await client.until(lambda _: client.events_of_type("worker_failed"))
        assert reason in client.events_of_type("worker_failed")[0]["data"]["error"]
        (end,) = client.events_of_type("turn_end")
        assert end["data"]["stopReason"] == "error"
        assert (await client.get())["status"] == "active"
        await client.server.call("POST", f"{client.path}/restart", json={"continueConversation": True})
        await client.until(lambda _: len(client.events_of_type("worker_ready")) == 2)
        await client.prompt("[[chunk again]]")
        await client.until_turns(2)
    assert client.agent_text() == "begunagain"


async def test_an_agent_that_is_killed_in_a_turn_fails_and_can_be_restarted(
    server: Server, workspace: Path
) -> None:
    journal = define_scripted(workspace)
    client, pid = await begin_turn(server)
    os.kill(pid, signal.SIGKILL)
    await check_failure(client, "SIGKILL")
    assert prompts_in(journal) == ["[[chunk begun]] [[sleep 1000]]", "[[chunk again]]"]


async def test_an_agent_that_is_killed_while_no_server_runs_fails_and_can_be_restarted(
    server: Server, workspace: Path
) -> None:
    define_scripted(workspace)
    client, pid = await begin_turn(server)
    await server.kill()
    os.kill(pid, signal.SIGKILL)
    await server.start()
    await check_failure(client, "SIGKILL")


async def test_a_killed_keeper_ends_its_agents_and_no_session(server: Server, workspace: Path) -> None:
    journal = define_scripted(workspace)
    client, pid = await begin_turn(server)
    os.kill(keeper_of(pid), signal.SIGKILL)
    await check_failure(client, "keeper lost")
    async with asyncio.timeout(30):
        while not has_ended(pid):
            await asyncio.sleep(0.02)
    assert prompts_in(journal).count("[[chunk begun]] [[sleep 1000]]") == 1


async def test_an_agent_with_automatic_restart_is_restarted_after_its_keeper_was_killed(
    server: Server, workspace: Path
) -> None:
    define_scripted(workspace, agent_id="phoenix", restart=True)
    client = await RetryingClient.begin(server, "phoenix")
    async with client.following():
        await client.until(lambda _: client.events_of_type("worker_ready"))
        os.kill(keeper_of(client.events_of_type("worker_ready")[0]["data"]["pid"]), signal.SIGKILL)
        await client.until(lambda _: len(client.events_of_type("worker_ready")) == 2)
        await client.prompt("[[chunk back]]")
        await client.until(lambda _: client.agent_text() == "back")
    assert [each["data"]["again"] for each in client.events_of_type("worker_failed")] == [True]


async def test_the_server_closes_the_files_of_a_terminal_whose_keeper_was_killed(server: Server) -> None:
    session = await server.new_session()
    worker = await server.new_terminal(session["id"])
    async with server.socket(f"/ws/session/{session['id']}/worker/{worker['id']}") as ws:
        await ws.recv()  # output of the shell: the server has opened its recording
        os.kill(keeper_of(worker["pid"]), signal.SIGKILL)
        failed = await server.worker_in(session["id"], worker["id"], "failed")
    assert failed["error"] == "keeper lost"
    async with asyncio.timeout(30):
        while any(worker["id"] in file.path for file in psutil.Process(server.pid).open_files()):
            await asyncio.sleep(0.02)
    assert "worker broke" not in server.output()


async def test_an_agent_fails_when_server_and_keeper_are_killed_together(
    server: Server, workspace: Path
) -> None:
    journal = define_scripted(workspace)
    client, pid = await begin_turn(server)
    keeper = keeper_of(pid)
    await server.kill()
    os.kill(keeper, signal.SIGKILL)
    await server.start()
    await check_failure(client, "keeper lost")
    assert prompts_in(journal).count("[[chunk begun]] [[sleep 1000]]") == 1


async def test_a_server_stopped_by_sigterm_ends_and_its_agents_continue(
    server: Server, workspace: Path
) -> None:
    journal = define_scripted(workspace)
    client = await RetryingClient.begin(server)
    async with client.following():
        await client.prompt("[[stream n=100 delay=0.02]]")
        await client.until(lambda _: client.agent_text())
        began = time.monotonic()
        assert await server.stop() == 0
        assert time.monotonic() - began < 30
        await asyncio.sleep(0.5)
        await server.start()
        await client.until_turns(1)
    assert client.agent_text() == "".join(f"<{number}>" for number in range(100))
    assert prompts_in(journal) == ["[[stream n=100 delay=0.02]]"]
