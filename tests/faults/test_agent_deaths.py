"""What happens when something else than the server dies: an agent, its keeper, both; and a polite goodbye."""

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


async def in_a_turn(server: Server) -> tuple[RetryingClient, int]:
    """An agent that has begun to answer, and its pid."""
    talker = await RetryingClient.begin(server)
    await talker.prompt("[[chunk begun]] [[sleep 1000]]")
    async with talker.following():
        await talker.until(lambda _: "begun" in talker.agent_text())
    return talker, talker.events_of_type("worker_ready")[0]["data"]["pid"]


async def check_failure(talker: RetryingClient, why: str) -> None:
    """The worker has failed, its turn has ended, the session stays and can be gone on with."""
    async with talker.following():
        await talker.until(lambda _: talker.events_of_type("worker_failed"))
        assert why in talker.events_of_type("worker_failed")[0]["data"]["error"]
        (end,) = talker.events_of_type("turn_end")
        assert end["data"]["stopReason"] == "error"
        assert (await talker.get())["status"] == "active"
        await talker.server.call("POST", f"{talker.path}/restart", json={"continueConversation": True})
        await talker.until(lambda _: len(talker.events_of_type("worker_ready")) == 2)
        await talker.prompt("[[chunk again]]")
        await talker.until_turns(2)
    assert talker.agent_text() == "begunagain"


async def test_an_agent_that_is_killed_in_a_turn_fails_and_can_be_restarted(
    server: Server, workspace: Path
) -> None:
    journal = define_scripted(workspace)
    talker, pid = await in_a_turn(server)
    os.kill(pid, signal.SIGKILL)
    await check_failure(talker, "SIGKILL")
    assert prompts_in(journal) == ["[[chunk begun]] [[sleep 1000]]", "[[chunk again]]"]


async def test_an_agent_that_dies_while_the_server_is_dead_too(server: Server, workspace: Path) -> None:
    define_scripted(workspace)
    talker, pid = await in_a_turn(server)
    await server.kill()
    os.kill(pid, signal.SIGKILL)
    await server.start()
    await check_failure(talker, "SIGKILL")


async def test_a_keeper_that_dies_takes_its_agents_but_no_session(server: Server, workspace: Path) -> None:
    journal = define_scripted(workspace)
    talker, pid = await in_a_turn(server)
    os.kill(keeper_of(pid), signal.SIGKILL)
    await check_failure(talker, "keeper lost")
    async with asyncio.timeout(30):
        while not has_ended(pid):
            await asyncio.sleep(0.02)
    assert prompts_in(journal).count("[[chunk begun]] [[sleep 1000]]") == 1


async def test_an_agent_that_is_to_be_restarted_is_when_its_keeper_died(
    server: Server, workspace: Path
) -> None:
    define_scripted(workspace, agent_id="phoenix", restart=True)
    talker = await RetryingClient.begin(server, "phoenix")
    async with talker.following():
        await talker.until(lambda _: talker.events_of_type("worker_ready"))
        os.kill(keeper_of(talker.events_of_type("worker_ready")[0]["data"]["pid"]), signal.SIGKILL)
        await talker.until(lambda _: len(talker.events_of_type("worker_ready")) == 2)
        await talker.prompt("[[chunk back]]")
        await talker.until(lambda _: talker.agent_text() == "back")
    assert [each["data"]["again"] for each in talker.events_of_type("worker_failed")] == [True]


async def test_a_terminal_whose_keeper_died_is_let_go_of(server: Server) -> None:
    session = await server.new_session()
    worker = await server.new_terminal(session["id"])
    async with server.socket(f"/ws/session/{session['id']}/worker/{worker['id']}") as ws:
        await ws.recv()  # what the shell said: the server has opened its recording
        os.kill(keeper_of(worker["pid"]), signal.SIGKILL)
        failed = await server.worker_in(session["id"], worker["id"], "failed")
    assert failed["error"] == "keeper lost"
    async with asyncio.timeout(30):
        while any(worker["id"] in file.path for file in psutil.Process(server.pid).open_files()):
            await asyncio.sleep(0.02)
    assert "worker broke" not in server.output()


async def test_server_and_keeper_die_together(server: Server, workspace: Path) -> None:
    journal = define_scripted(workspace)
    talker, pid = await in_a_turn(server)
    keeper = keeper_of(pid)
    await server.kill()
    os.kill(keeper, signal.SIGKILL)
    await server.start()
    await check_failure(talker, "keeper lost")
    assert prompts_in(journal).count("[[chunk begun]] [[sleep 1000]]") == 1


async def test_a_server_that_is_asked_to_end_does_and_its_agents_go_on(
    server: Server, workspace: Path
) -> None:
    journal = define_scripted(workspace)
    talker = await RetryingClient.begin(server)
    async with talker.following():
        await talker.prompt("[[stream n=100 delay=0.02]]")
        await talker.until(lambda _: talker.agent_text())
        began = time.monotonic()
        assert await server.stop() == 0
        assert time.monotonic() - began < 30
        await asyncio.sleep(0.5)
        await server.start()
        await talker.until_turns(1)
    assert talker.agent_text() == "".join(f"<{number}>" for number in range(100))
    assert prompts_in(journal) == ["[[stream n=100 delay=0.02]]"]
