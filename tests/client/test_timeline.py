"""The methods for time lines, recordings and saved sessions, and for leaving a session, on a real server."""

import asyncio
import json
from contextlib import aclosing
from pathlib import Path

from bullpen.client import Client
from support.server import Server


async def test_the_time_line_and_the_cast_of_a_terminal_are_read(client: Client, workspace: Path) -> None:
    session = await client.create_session(location_path=str(workspace))
    worker = await client.add_worker(session.id, command=["echo", "hello"])
    async with client.terminal(session.id, worker.id) as terminal:
        async for _ in terminal:
            pass
    line = await client.timeline(session.id)
    (run,) = line.terminals
    assert (run.worker_id, run.run, line.moment) == (worker.id, 1, None)
    assert run.sizes
    moment = (await client.timeline(session.id, at=line.ends)).moment
    assert moment is not None
    assert (moment.seq, moment.terminals[0].offset) == (line.head, 7)
    cast = b"".join([chunk async for chunk in client.recording_cast(session.id, worker.id)])
    assert json.loads(cast.splitlines()[0])["version"] == 2
    assert b"hello" in cast


async def test_a_session_that_ends_with_its_viewers_ends_when_they_leave(
    client: Client, server: Server
) -> None:
    session = await client.create_session(location_path=str(server.workspace), on_last_disconnect="terminate")
    async with aclosing(client.follow(session.id)) as events:
        await anext(events)
    await client.leave_session(session.id)
    async with asyncio.timeout(60):
        while (await client.session(session.id)).active:
            await asyncio.sleep(0.05)


async def test_the_saved_sessions_of_agent_console_are_found(client: Client, workspace: Path) -> None:
    assert (await client.saved_sessions()).path is None
    file = workspace / ".agent-console" / "sessions.json"  # the home of the server is the workspace
    file.parent.mkdir()
    file.write_text('[{"id": "a"}]')
    found = await client.saved_sessions()
    assert (found.path, found.sessions) == (str(file), [{"id": "a"}])
