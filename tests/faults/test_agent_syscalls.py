"""The server is killed at its persistence and send syscalls in handshakes, turns and recovery (R-02)."""

import os
import random
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from support.agent_client import AgentClient, define_scripted
from support.scripted_agent.journal import message_of, prompts_in, read_journal
from support.server import Server
from support.strace import killed_at
from support.stubborn import Stubborn

FULL = os.environ.get("BULLPEN_FAULTS") == "full"
POINTS = list(range(1, 161)) if FULL else random.sample(range(1, 110), 40)
SHARES = 32 if FULL else 10  # a test each, so that none takes minutes
TEXT = "[[stream n=5]] [[write path=file content=w]] [[permission title=x]] [[tool title=y]] [[chunk end]]"


@pytest.mark.parametrize("share", range(SHARES))
async def test_a_kill_at_any_syscall_of_a_handshake_and_a_turn_loses_and_doubles_nothing(
    server: Server, workspace: Path, share: int
) -> None:
    deaths = 0
    for number in POINTS[share::SHARES]:
        journal = define_scripted(workspace, agent_id=f"agent-{number}")
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(killed_at(server.pid, number))
            stubborn = Stubborn(server, stack)
            await _one_round(server, f"agent-{number}", journal)
            await stubborn.close()
            deaths += stubborn.deaths
        await server.ready()
    assert deaths, "no kill hit: the test shows nothing"


async def _one_round(server: Server, agent_id: str, journal: Path) -> None:
    """A session with an agent is made, prompted and allowed, every order repeated until it is answered."""
    talker = await AgentClient.begin(server, agent_id)
    async with talker.following():
        await talker.prompt(TEXT)
        await talker.until(lambda _: talker.asked())
        (permission,) = talker.asked()
        await talker.answer(permission, "yes")
        await talker.until(lambda _: talker.of_type("turn_end"))
        assert await talker.log() == talker.events
    assert prompts_in(journal) == [TEXT]
    assert talker.text() == "<0><1><2><3><4>end"
    for once in ("worker_ready", "agent_session", "user_prompt", "file_write", "turn_end"):
        assert len(talker.of_type(once)) == 1, once
    records = list(read_journal(journal))
    assert len({record["pid"] for record in records}) == 1
    heard = [message_of(record).get("method") for record in records if record["dir"] == "in"]
    assert heard == ["initialize", "session/new", "session/prompt", None, None]
    await talker.server.call("DELETE", talker.path)
