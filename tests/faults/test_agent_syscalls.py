"""The server is killed at its persistence and send syscalls in handshakes, turns and recovery (R-02)."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from bullpen.log.recordings import RecordingStore
from support.auto_restarter import AutoRestarter
from support.retrying_client import SECONDS, RetryingClient, define_scripted, retry_until_answered
from support.scripted_agent.journal import message_of, prompts_in, read_journal
from support.server import Server
from support.strace import kill_at_each, share_points

# So many in a round, or a few more: of the log and its followers, the recorder, the file the agent writes.
MADE = {"fdatasync": 15, "writev": 12, "write": 34, "pwrite64": 280}
MADE |= {"ftruncate": 1, "rename": 1, "unlinkat": 1, "renameat": 1}
SHARES = share_points(MADE, tests=10)
TEXT = "[[stream n=5]] [[write path=file content=w]] [[permission title=x]] [[tool title=y]] [[chunk end]]"


@pytest.mark.parametrize("share", range(len(SHARES)))
async def test_a_kill_at_any_syscall_of_a_handshake_and_a_turn_loses_and_doubles_nothing(
    server: Server, workspace: Path, share: int
) -> None:
    async def one_round(stack: AsyncExitStack, number: int) -> int:
        journal = define_scripted(workspace, agent_id=f"agent-{number}")
        written = workspace / "file"
        written.unlink(missing_ok=True)  # what a file holds already is not written
        stubborn = AutoRestarter(server, stack)
        await _one_round(server, f"agent-{number}", journal)
        await stubborn.close()
        assert written.read_text() == "w"
        assert {path.name for path in workspace.iterdir()} == {"file", ".config"}
        return stubborn.deaths

    await kill_at_each(server, SHARES[share], MADE, one_round)


async def _one_round(server: Server, agent_id: str, journal: Path) -> None:
    """A session with an agent is made, prompted and allowed, every order repeated until it is answered."""
    talker = await RetryingClient.begin(server, agent_id)
    async with talker.following():
        await talker.prompt(TEXT)
        await talker.until(lambda _: talker.open_permissions())
        (permission,) = talker.open_permissions()
        await talker.answer(permission, "yes")
        await talker.until(lambda _: talker.events_of_type("turn_end"))
        assert await talker.stored_events() == talker.events
    assert prompts_in(journal) == [TEXT]
    assert talker.agent_text() == "<0><1><2><3><4>end"
    for once in ("worker_ready", "agent_session", "user_prompt", "file_write", "turn_end"):
        assert len(talker.events_of_type(once)) == 1, once
    records = list(read_journal(journal))
    assert len({record["pid"] for record in records}) == 1
    heard = [message_of(record).get("method") for record in records if record["dir"] == "in"]
    assert heard == ["initialize", "session/new", "session/prompt", None, None]
    await _until_recorded(talker)
    await retry_until_answered(lambda: server.call("DELETE", talker.path))


async def _until_recorded(talker: RetryingClient) -> None:
    recordings = RecordingStore(talker.server.home / "recordings")
    async with asyncio.timeout(SECONDS):
        while recordings.metadata_seq(talker.id) < len(talker.events):
            await asyncio.sleep(0.02)
    assert recordings.last_seq(talker.id) == len(talker.events)
