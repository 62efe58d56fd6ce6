"""R-08 and R-18: a crowd that watches, some slowly and some not at all, also over a restart."""

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
CHUNKS, CHUNK = 3000, 4000  # in bytes: together more than the kernel keeps for one who does not read
ROOM = (200 if FULL else 128) << 20
SESSIONS, VIEWERS = (100, 500) if FULL else (20, 100)
WITH_AGENT = 5  # of the sessions; the others have a terminal
PATIENCE = 600 if FULL else 120
COUNTING = "for i in $(seq 200); do echo line $i; sleep 0.02; done; exit\r"


@pytest.mark.timeout(900)
async def test_r08_who_reads_slowly_or_not_at_all_holds_up_nobody_and_costs_little(
    server: Server, workspace: Path
) -> None:
    define_scripted(workspace)
    talker = await RetryingClient.begin(server)
    fast = [SessionViewer(server, talker.id) for _ in range(FAST)]
    slow = [SessionViewer(server, talker.id, read_delay=0.05) for _ in range(SLOW)]
    stopped = [SessionViewer(server, talker.id) for _ in range(STOPPED)]
    everybody = [*fast, *slow, *stopped]
    async with asyncio.timeout(PATIENCE), AsyncExitStack() as stack:
        for viewer in everybody:
            await stack.enter_async_context(viewer.watching())
        await asyncio.gather(*(viewer.received.wait() for viewer in everybody))
        for viewer in stopped:
            viewer.reading.clear()
        before = _memory(server)
        await talker.prompt(f"[[stream n={CHUNKS} size={CHUNK}]]")
        await asyncio.gather(*(viewer.until_seen("turn_end") for viewer in fast))
        assert all("turn_end" not in viewer.types for viewer in stopped), (
            "nobody was stopped: it shows nothing"
        )
        assert _memory(server) - before < ROOM
        for viewer in slow:
            viewer.read_delay = 0.0
        for viewer in stopped:
            viewer.reading.set()
        head = len(await talker.stored_events())
        await asyncio.gather(*(viewer.until(head) for viewer in everybody))
        assert _memory(server) - before < ROOM
    assert not any(viewer.cuts for viewer in everybody)


@pytest.mark.timeout(900)
async def test_r18_after_a_restart_a_crowd_has_every_session_whole(server: Server, workspace: Path) -> None:
    define_scripted(workspace)
    talkers = [await RetryingClient.begin(server) for _ in range(WITH_AGENT)]
    terminals = [await _terminal(server) for _ in range(SESSIONS - WITH_AGENT)]
    sessions = [*(talker.id for talker in talkers), *(session for session, _ in terminals)]
    crowd = [SessionViewer(server, session) for session in sessions for _ in range(VIEWERS // SESSIONS - 1)]
    windows = [TerminalViewer(server, *terminal) for terminal in terminals]
    async with asyncio.timeout(PATIENCE), AsyncExitStack() as stack:
        for watching in (*(each.watching() for each in crowd), *(each.watching() for each in windows)):
            await stack.enter_async_context(watching)
        await asyncio.gather(*(talker.prompt("[[stream n=200 delay=0.02]]") for talker in talkers))
        await asyncio.gather(
            *(TerminalWriter(server, *terminal, "t").type(COUNTING) for terminal in terminals)
        )
        await asyncio.gather(*(viewer.received.wait() for viewer in crowd))
        await server.restart()
        await asyncio.gather(*(viewer.until_exit() for viewer in windows))
        await asyncio.gather(*(viewer.until_seen(_last_of(viewer, talkers)) for viewer in crowd))
        heads = {session: await _head(server, session) for session in sessions}
        await asyncio.gather(*(viewer.until(heads[viewer.session_id]) for viewer in crowd))
    assert all(viewer.cuts for viewer in crowd)
    assert [viewer.last for viewer in crowd] == [heads[viewer.session_id] for viewer in crowd]
    for viewer in windows:
        assert [int(number) for number in re.findall(rb"line (\d+)\r\n", viewer.data)] == [*range(1, 201)]


async def _terminal(server: Server) -> tuple[str, str]:
    session = await server.new_session()
    return session["id"], (await server.new_terminal(session["id"]))["id"]


def _last_of(viewer: SessionViewer, talkers: list[RetryingClient]) -> str:
    """What is still to come in a session: the end of its turn, or of its program."""
    return "turn_end" if viewer.session_id in [talker.id for talker in talkers] else "worker_exited"


async def _head(server: Server, session_id: str) -> int:
    head: int = (await server.call("GET", f"/api/sessions/{session_id}"))["lastSeq"]
    return head


def _memory(server: Server) -> int:
    rss: int = psutil.Process(server.pid).memory_info().rss
    return rss
