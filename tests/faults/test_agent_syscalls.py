"""The server is killed at system calls that store or send, in a handshake, a turn and its own recovery."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from bullpen.log.recording_store import RecordingStore
from support.auto_restarter import AutoRestarter
from support.retrying_client import SECONDS, RetryingClient, define_scripted, retry_until_answered
from support.scripted_agent.journal import message_of, prompts_in, read_journal
from support.server import Server
from support.strace import kill_at_each, share_points

# Calls in a round, at least: by the log and its followers, the recorder, and the file that the agent writes.
CALLS_IN_A_ROUND = {"fdatasync": 15, "writev": 12, "write": 34, "pwrite64": 280}
CALLS_IN_A_ROUND |= {"ftruncate": 1, "rename": 1, "unlinkat": 1, "renameat": 1}
SHARES = share_points(CALLS_IN_A_ROUND, tests=10)
PROMPT = "[[stream n=5]] [[write path=file content=w]] [[permission title=x]] [[tool title=y]] [[chunk end]]"


@pytest.mark.parametrize("share", range(len(SHARES)))
async def test_a_kill_at_any_syscall_of_a_handshake_and_a_turn_loses_and_repeats_nothing(
    server: Server, workspace: Path, share: int
) -> None:
    async def one_round(stack: AsyncExitStack, number: int) -> int:
        journal = define_scripted(workspace, agent_id=f"agent-{number}")
        written = workspace / "file"
        written.unlink(missing_ok=True)  # the server does not write a file that has this content already
        stubborn = AutoRestarter(server, stack)
        await _one_round(server, f"agent-{number}", journal)
        await stubborn.close()
        assert written.read_text() == "w"
        assert {path.name for path in workspace.iterdir()} == {"file", ".config"}
        return stubborn.deaths

    await kill_at_each(server, SHARES[share], CALLS_IN_A_ROUND, one_round)


async def _one_round(server: Server, agent_id: str, journal: Path) -> None:
    """Create a session with an agent, prompt it, and allow its request; repeat each order until answered."""
    client = await RetryingClient.begin(server, agent_id)
    async with client.following():
        await client.prompt(PROMPT)
        await client.until(lambda _: client.open_permissions())
        (permission,) = client.open_permissions()
        await client.answer(permission, "yes")
        await client.until(lambda _: client.events_of_type("turn_end"))
        assert await client.stored_events() == client.events
    assert prompts_in(journal) == [PROMPT]
    assert client.agent_text() == "<0><1><2><3><4>end"
    for event_type in ("worker_ready", "agent_session", "user_prompt", "file_write", "turn_end"):
        assert len(client.events_of_type(event_type)) == 1, event_type
    records = list(read_journal(journal))
    assert len({record["process"] for record in records}) == 1
    methods = [message_of(record).get("method") for record in records if record["dir"] == "in"]
    assert methods == ["initialize", "session/new", "session/prompt", None, None]
    await _until_recorded(client)
    await retry_until_answered(lambda: server.call("DELETE", client.path))


async def _until_recorded(client: RetryingClient) -> None:
    recordings = RecordingStore(client.server.home / "recordings")
    async with asyncio.timeout(SECONDS):
        while recordings.metadata_seq(client.id) < len(client.events):
            await asyncio.sleep(0.02)
    assert recordings.last_seq(client.id) == len(client.events)
