"""The server, an agent, the keeper or the machine ends at each stage of a turn.

test_disk_errors_in_a_turn.py tests a full disk. tests/sessions/test_presence.py tests the end of a session
after its last viewer, and test_viewers_after_restart.py the same over a restart of the server.
"""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from support.retrying_client import RetryingClient, define_scripted
from support.scripted_agent.journal import message_of, prompts_in, read_journal
from support.server import Server
from support.strace import CALLS, killed_at

# A killed process keeps what it wrote: at pwrite64 the commit has not happened, at its fdatasync it has.
BEFORE, AFTER = "pwrite64", "fdatasync"
SENDING = "write,writev,sendto,sendmsg"
SECONDS = 60.0

SHORT = "[[chunk done]]"
LONG = "[[chunk begun]] [[sleep 1000]]"


class ObservedAgent:
    """A session with one agent that keeps a journal, and a client that follows the session."""

    def __init__(self, server: Server, workspace: Path) -> None:
        self.server = server
        self.journal = define_scripted(workspace)
        self.client: RetryingClient

    @asynccontextmanager
    async def running(self) -> AsyncIterator[RetryingClient]:
        self.client = await RetryingClient.begin(self.server)
        async with self.client.following():
            await self.client.until(lambda _: self.client.events_of_type("worker_ready"))
            yield self.client

    async def do_while_killed(self, calls: str, number: int, action: Callable[[], Awaitable[Any]]) -> None:
        """Run the action; kill the server at its n-th call of a kind, at the latest after the action.

        The action finishes with the next server.
        """
        process = self.server.process
        assert process is not None
        async with asyncio.TaskGroup() as tasks:
            async with killed_at(self.server.pid, number, calls), asyncio.timeout(SECONDS):
                running_action = tasks.create_task(_run(action))
                while process.poll() is None and not running_action.done():
                    await asyncio.sleep(0.01)
            await self.server.restart()
            await running_action

    async def check(self, prompts: list[str], text: str) -> None:
        """Check that every prompt and answer exists once everywhere, and that the agent kept its process."""
        await self.client.until(lambda _: len(self.client.events_of_type("turn_end")) == len(prompts))
        assert prompts_in(self.journal) == prompts
        assert self.client.agent_text() == text
        assert await self.client.stored_events() == self.client.events
        assert len({record["process"] for record in read_journal(self.journal)}) == 1

    @property
    def pid(self) -> int:
        pid: int = self.client.events_of_type("worker_ready")[-1]["data"]["pid"]
        return pid

    async def restart(self) -> None:
        ready = len(self.client.events_of_type("worker_ready"))
        await self.server.call("POST", f"{self.client.path}/restart", json={"continueConversation": True})
        await self.client.until(lambda _: len(self.client.events_of_type("worker_ready")) == ready + 1)


async def _run(action: Callable[[], Awaitable[Any]]) -> None:
    await action()


@pytest.fixture
def agent(server: Server, workspace: Path) -> ObservedAgent:
    return ObservedAgent(server, workspace)


async def test_a_prompt_is_done_once_when_the_server_is_killed_before_it_is_stored(
    agent: ObservedAgent,
) -> None:
    async with agent.running() as client:
        await agent.do_while_killed(BEFORE, 1, lambda: client.prompt(SHORT))
        await agent.check([SHORT], "done")


async def test_a_prompt_is_done_once_when_the_server_is_killed_before_it_is_sent(
    agent: ObservedAgent,
) -> None:
    async with agent.running() as client:
        await agent.do_while_killed(AFTER, 1, lambda: client.prompt(SHORT))
        await agent.check([SHORT], "done")


@pytest.mark.parametrize("number", [1, 2, 3])
async def test_a_prompt_is_done_once_when_the_server_is_killed_while_it_is_sent(
    agent: ObservedAgent, number: int
) -> None:
    async with agent.running() as client:
        await agent.do_while_killed(SENDING, number, lambda: client.prompt(SHORT))
        await agent.check([SHORT], "done")


@pytest.mark.parametrize("calls", [BEFORE, AFTER], ids=["before the commit", "before the broadcast"])
async def test_output_is_stored_once_when_the_server_is_killed_after_reading_it(
    agent: ObservedAgent, calls: str
) -> None:
    flag = agent.server.workspace / "go"
    text = f"[[chunk begun]] [[terminal 'until test -e {flag}; do sleep 0.1; done']] [[chunk more]]"
    async with agent.running() as client:
        await client.prompt(text)
        await client.until(lambda _: len(client.events_of_type("worker_ready")) == 2)

        async def go_on() -> None:
            flag.touch()
            await client.until_turns(1)

        await agent.do_while_killed(calls, 1, go_on)
        await agent.check([text], "begunexit 0 said ''more")


@pytest.mark.parametrize("number", [1, 3, 5])
async def test_a_handshake_is_finished_when_the_server_is_killed_in_it(
    agent: ObservedAgent, number: int
) -> None:
    async def begin() -> None:
        async with agent.running():
            pass

    await agent.do_while_killed(AFTER, number, begin)
    async with agent.client.following():
        await agent.client.prompt(SHORT)
        await agent.check([SHORT], "done")
    methods = [message_of(each).get("method") for each in read_journal(agent.journal) if each["dir"] == "in"]
    assert methods == ["initialize", "session/new", "session/prompt"]


@pytest.mark.parametrize("number", [1, 4, 9])
async def test_a_turn_is_complete_when_the_server_is_killed_during_recovery(
    agent: ObservedAgent, number: int
) -> None:
    text = "[[stream n=50 delay=0.02]]"
    async with agent.running() as client:
        await client.prompt(text)
        await client.until(lambda _: client.agent_text())
        await agent.server.kill()
        await agent.server.start(wait=False)
        await agent.do_while_killed(CALLS, number, client.get)
        await agent.check([text], "".join(f"<{n}>" for n in range(50)))


async def test_the_queue_is_paused_when_the_agent_is_killed_in_a_turn(agent: ObservedAgent) -> None:
    async with agent.running() as client:
        await client.prompt(LONG)
        await client.prompt(SHORT)
        await client.until(lambda _: client.agent_text())
        os.kill(agent.pid, signal.SIGKILL)
        await client.until(lambda _: client.events_of_type("worker_failed"))
        assert client.events_of_type("worker_failed")[0]["data"]["signal"] == "SIGKILL"
        assert [end["data"]["stopReason"] for end in client.events_of_type("turn_end")] == ["error"]
        await agent.restart()
        queue = await client.get("/queue")
        assert (queue["paused"], [item["message"] for item in queue["messages"]]) == (True, [SHORT])
        assert prompts_in(agent.journal) == [LONG]
        await agent.server.call("POST", f"{client.path}/queue/resume")
        await client.until_turns(2)
    assert prompts_in(agent.journal) == [LONG, SHORT]


@pytest.mark.parametrize("with_server", [False, True], ids=["alone", "with the server"])
async def test_an_agent_fails_when_its_keeper_is_killed(agent: ObservedAgent, with_server: bool) -> None:
    async with agent.running() as client:
        await client.prompt(LONG)
        await client.until(lambda _: client.agent_text())
        await _kill_keeper(agent, with_server)
        await _check_lost(agent)


async def test_an_agent_fails_when_the_machine_loses_power(agent: ObservedAgent) -> None:
    """Server and keeper are gone at once, and the last bytes of the spool were not written to the disk."""
    async with agent.running() as client:
        await client.prompt(LONG)
        await client.until(lambda _: client.agent_text())
        await agent.server.kill()
        await _kill_keeper(agent, with_server=False)
        worker = client.events_of_type("worker_ready")[0]["workerId"]
        for segment in (agent.server.home / "spool" / worker / "1" / "out").glob("*.bin"):
            os.truncate(segment, segment.stat().st_size // 2)
        await agent.server.start()
        await _check_lost(agent)


async def _kill_keeper(agent: ObservedAgent, with_server: bool) -> None:
    keeper = psutil.Process(agent.pid).parent()
    assert keeper is not None
    if with_server:
        await agent.server.kill()
    keeper.kill()
    if with_server:
        await agent.server.start()


async def _check_lost(agent: ObservedAgent) -> None:
    """Check that the session stays active, the worker failed, and no prompt was repeated without an order."""
    client = agent.client
    await client.until(lambda _: client.events_of_type("worker_failed"))
    assert "keeper lost" in client.events_of_type("worker_failed")[0]["data"]["error"]
    assert [end["data"]["stopReason"] for end in client.events_of_type("turn_end")] == ["error"]
    assert (await client.get())["status"] == "active"
    await agent.restart()
    await client.prompt(SHORT)
    await client.until_turns(2)
    assert prompts_in(agent.journal) == [LONG, SHORT]
