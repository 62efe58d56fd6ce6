"""Many viewers follow sessions, some read slowly and some not at all, also over a restart of the server."""

import asyncio
import os
import re
from contextlib import AsyncExitStack
from pathlib import Path

import psutil
import pytest

from support.retrying_client import RetryingClient, define_scripted
from support.server import Server
from support.session_viewer import SessionViewer
from support.terminal_viewer import TerminalViewer, TerminalWriter

FULL = os.environ.get("BULLPEN_FAULTS") == "full"
FAST, SLOW, STOPPED = (440, 50, 10) if FULL else (24, 8, 6)
CHUNKS, CHUNK = 3000, 4000  # bytes: together more than the kernel buffers for a viewer that does not read
MAX_GROWTH_BYTES = (200 if FULL else 128) << 20
SESSIONS, VIEWERS = (100, 500) if FULL else (20, 100)
WITH_AGENT = 5  # sessions; the others have a terminal
TIMEOUT = 600 if FULL else 120
COUNTING = "for i in $(seq 200); do echo line $i; sleep 0.02; done; exit\r"


@pytest.mark.timeout(900)
async def test_viewers_that_read_slowly_or_not_at_all_delay_no_other_viewer_and_need_little_memory(
    server: Server, workspace: Path
) -> None:
    define_scripted(workspace)
    client = await RetryingClient.begin(server)
    fast = [SessionViewer(server, client.id) for _ in range(FAST)]
    slow = [SessionViewer(server, client.id, read_delay=0.05) for _ in range(SLOW)]
    stopped = [SessionViewer(server, client.id) for _ in range(STOPPED)]
    viewers = [*fast, *slow, *stopped]
    async with asyncio.timeout(TIMEOUT), AsyncExitStack() as stack:
        for viewer in viewers:
            await stack.enter_async_context(viewer.watching())
        await asyncio.gather(*(viewer.received.wait() for viewer in viewers))
        for viewer in stopped:
            viewer.reading.clear()
        before = _memory(server)
        await client.prompt(f"[[stream n={CHUNKS} size={CHUNK}]]")
        await asyncio.gather(*(viewer.until_seen("turn_end") for viewer in fast))
        assert all("turn_end" not in viewer.types for viewer in stopped), (
            "no viewer was stopped, so nothing was tested"
        )
        assert _memory(server) - before < MAX_GROWTH_BYTES
        for viewer in slow:
            viewer.read_delay = 0.0
        for viewer in stopped:
            viewer.reading.set()
        head = len(await client.stored_events())
        await asyncio.gather(*(viewer.until(head) for viewer in viewers))
        assert _memory(server) - before < MAX_GROWTH_BYTES
    assert not any(viewer.cuts for viewer in viewers)


@pytest.mark.timeout(900)
async def test_after_a_restart_many_viewers_get_every_event_of_every_session(
    server: Server, workspace: Path
) -> None:
    define_scripted(workspace)
    clients = [await RetryingClient.begin(server) for _ in range(WITH_AGENT)]
    terminals = [await _terminal(server) for _ in range(SESSIONS - WITH_AGENT)]
    sessions = [*(client.id for client in clients), *(session for session, _ in terminals)]
    followers = [
        SessionViewer(server, session) for session in sessions for _ in range(VIEWERS // SESSIONS - 1)
    ]
    terminal_viewers = [TerminalViewer(server, *terminal) for terminal in terminals]
    async with asyncio.timeout(TIMEOUT), AsyncExitStack() as stack:
        for watching in (
            *(each.watching() for each in followers),
            *(each.watching() for each in terminal_viewers),
        ):
            await stack.enter_async_context(watching)
        await asyncio.gather(*(client.prompt("[[stream n=200 delay=0.02]]") for client in clients))
        await asyncio.gather(
            *(TerminalWriter(server, *terminal, "t").type(COUNTING) for terminal in terminals)
        )
        await asyncio.gather(*(viewer.received.wait() for viewer in followers))
        await server.restart()
        await asyncio.gather(*(viewer.until_exit() for viewer in terminal_viewers))
        await asyncio.gather(*(viewer.until_seen(_last_of(viewer, clients)) for viewer in followers))
        heads = {session: await _head(server, session) for session in sessions}
        await asyncio.gather(*(viewer.until(heads[viewer.session_id]) for viewer in followers))
    assert all(viewer.cuts for viewer in followers)
    assert [viewer.last for viewer in followers] == [heads[viewer.session_id] for viewer in followers]
    for viewer in terminal_viewers:
        assert [int(number) for number in re.findall(rb"line (\d+)\r\n", viewer.data)] == [*range(1, 201)]


async def _terminal(server: Server) -> tuple[str, str]:
    session = await server.new_session()
    return session["id"], (await server.new_terminal(session["id"]))["id"]


def _last_of(viewer: SessionViewer, clients: list[RetryingClient]) -> str:
    """Return the type of the last event to come: the end of the turn, or of the program."""
    return "turn_end" if viewer.session_id in [client.id for client in clients] else "worker_exited"


async def _head(server: Server, session_id: str) -> int:
    head: int = (await server.call("GET", f"/api/sessions/{session_id}"))["lastSeq"]
    return head


def _memory(server: Server) -> int:
    rss: int = psutil.Process(server.pid).memory_info().rss
    return rss
