"""Each row of the table "what happens when something dies" about agents, as a test by its name (R-05).

A full disk has its own tests in test_agent_disk.py, the last viewer in tests/sessions/test_presence.py
and, when the server dies, in test_viewers_gone.py.
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


class Agent:
    """One session with one agent that keeps a journal."""

    def __init__(self, server: Server, workspace: Path) -> None:
        self.server = server
        self.journal = define_scripted(workspace)
        self.talker: RetryingClient

    @asynccontextmanager
    async def running(self) -> AsyncIterator[RetryingClient]:
        self.talker = await RetryingClient.begin(self.server)
        async with self.talker.following():
            await self.talker.until(lambda _: self.talker.events_of_type("worker_ready"))
            yield self.talker

    async def dies_at(self, calls: str, number: int, deed: Callable[[], Awaitable[Any]]) -> None:
        """The server is killed at a syscall of a deed, at the latest at its end; it is done all the same."""
        process = self.server.process
        assert process is not None
        async with asyncio.TaskGroup() as tasks:
            async with killed_at(self.server.pid, number, calls), asyncio.timeout(SECONDS):
                doing = tasks.create_task(_awaited(deed))
                while process.poll() is None and not doing.done():
                    await asyncio.sleep(0.01)
            await self.server.restart()
            await doing

    async def check(self, prompts: list[str], text: str) -> None:
        """Everything once, everywhere; and the agent never noticed."""
        await self.talker.until(lambda _: len(self.talker.events_of_type("turn_end")) == len(prompts))
        assert prompts_in(self.journal) == prompts
        assert self.talker.agent_text() == text
        assert await self.talker.stored_events() == self.talker.events
        assert len({record["pid"] for record in read_journal(self.journal)}) == 1

    @property
    def pid(self) -> int:
        pid: int = self.talker.events_of_type("worker_ready")[-1]["data"]["pid"]
        return pid

    async def restart(self) -> None:
        ready = len(self.talker.events_of_type("worker_ready"))
        await self.server.call("POST", f"{self.talker.path}/restart", json={"continueConversation": True})
        await self.talker.until(lambda _: len(self.talker.events_of_type("worker_ready")) == ready + 1)


async def _awaited(deed: Callable[[], Awaitable[Any]]) -> None:
    await deed()


@pytest.fixture
def agent(server: Server, workspace: Path) -> Agent:
    return Agent(server, workspace)


async def test_server_before_a_command_is_stored(agent: Agent) -> None:
    async with agent.running() as talker:
        await agent.dies_at(BEFORE, 1, lambda: talker.prompt(SHORT))
        await agent.check([SHORT], "done")


async def test_server_after_it_is_stored_before_it_is_written(agent: Agent) -> None:
    async with agent.running() as talker:
        await agent.dies_at(AFTER, 1, lambda: talker.prompt(SHORT))
        await agent.check([SHORT], "done")


@pytest.mark.parametrize("number", [1, 2, 3])
async def test_server_while_writing_or_after_and_before_it_noted_so(agent: Agent, number: int) -> None:
    async with agent.running() as talker:
        await agent.dies_at(SENDING, number, lambda: talker.prompt(SHORT))
        await agent.check([SHORT], "done")


@pytest.mark.parametrize("calls", [BEFORE, AFTER], ids=["before the commit", "before the broadcast"])
async def test_server_after_reading_output(agent: Agent, calls: str) -> None:
    flag = agent.server.workspace / "go"
    text = f"[[chunk begun]] [[terminal 'until test -e {flag}; do sleep 0.1; done']] [[chunk more]]"
    async with agent.running() as talker:
        await talker.prompt(text)
        await talker.until(lambda _: len(talker.events_of_type("worker_ready")) == 2)

        async def go_on() -> None:
            flag.touch()
            await talker.until_turns(1)

        await agent.dies_at(calls, 1, go_on)
        await agent.check([text], "begunexit 0 said ''more")


@pytest.mark.parametrize("number", [1, 3, 5])
async def test_server_in_the_middle_of_a_handshake(agent: Agent, number: int) -> None:
    async def begin() -> None:
        async with agent.running():
            pass

    await agent.dies_at(AFTER, number, begin)
    async with agent.talker.following():
        await agent.talker.prompt(SHORT)
        await agent.check([SHORT], "done")
    heard = [message_of(each).get("method") for each in read_journal(agent.journal) if each["dir"] == "in"]
    assert heard == ["initialize", "session/new", "session/prompt"]


@pytest.mark.parametrize("number", [1, 4, 9])
async def test_server_during_recovery(agent: Agent, number: int) -> None:
    text = "[[stream n=50 delay=0.02]]"
    async with agent.running() as talker:
        await talker.prompt(text)
        await talker.until(lambda _: talker.agent_text())
        await agent.server.kill()
        await agent.server.start(wait=False)
        await agent.dies_at(CALLS, number, talker.get)
        await agent.check([text], "".join(f"<{n}>" for n in range(50)))


async def test_agent_in_a_turn(agent: Agent) -> None:
    async with agent.running() as talker:
        await talker.prompt(LONG)
        await talker.prompt(SHORT)
        await talker.until(lambda _: talker.agent_text())
        os.kill(agent.pid, signal.SIGKILL)
        await talker.until(lambda _: talker.events_of_type("worker_failed"))
        assert talker.events_of_type("worker_failed")[0]["data"]["signal"] == "SIGKILL"
        assert [end["data"]["stopReason"] for end in talker.events_of_type("turn_end")] == ["error"]
        await agent.restart()
        queue = await talker.get("/queue")
        assert (queue["paused"], [item["message"] for item in queue["messages"]]) == (True, [SHORT])
        assert prompts_in(agent.journal) == [LONG]
        await agent.server.call("POST", f"{talker.path}/queue/resume")
        await talker.until_turns(2)
    assert prompts_in(agent.journal) == [LONG, SHORT]


@pytest.mark.parametrize("with_server", [False, True], ids=["alone", "with the server"])
async def test_keeper(agent: Agent, with_server: bool) -> None:
    async with agent.running() as talker:
        await talker.prompt(LONG)
        await talker.until(lambda _: talker.agent_text())
        await _kill_keeper(agent, with_server)
        await _check_lost(agent)


async def test_machine(agent: Agent) -> None:
    """Everything is gone at once, and the last bytes of the spool never came to the disk."""
    async with agent.running() as talker:
        await talker.prompt(LONG)
        await talker.until(lambda _: talker.agent_text())
        await agent.server.kill()
        await _kill_keeper(agent, with_server=False)
        worker = talker.events_of_type("worker_ready")[0]["workerId"]
        for segment in (agent.server.home / "spool" / worker / "1" / "out").glob("*.bin"):
            os.truncate(segment, segment.stat().st_size // 2)
        await agent.server.start()
        await _check_lost(agent)


async def _kill_keeper(agent: Agent, with_server: bool) -> None:
    keeper = psutil.Process(agent.pid).parent()
    assert keeper is not None
    if with_server:
        await agent.server.kill()
    keeper.kill()
    if with_server:
        await agent.server.start()


async def _check_lost(agent: Agent) -> None:
    """The session stays; what the agent may not have got is said, and nothing is sent again by itself."""
    talker = agent.talker
    await talker.until(lambda _: talker.events_of_type("worker_failed"))
    assert "keeper lost" in talker.events_of_type("worker_failed")[0]["data"]["error"]
    assert [end["data"]["stopReason"] for end in talker.events_of_type("turn_end")] == ["error"]
    assert (await talker.get())["status"] == "active"
    await agent.restart()
    await talker.prompt(SHORT)
    await talker.until_turns(2)
    assert prompts_in(agent.journal) == [LONG, SHORT]
