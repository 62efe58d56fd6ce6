"""The synchronous client."""

import asyncio
from itertools import islice
from pathlib import Path

import pytest

from bullpen.client import Client, ExitFrame, SyncClient
from bullpen.domain.errors import NotFound
from support.server import Server


def use_every_feature(server: Server, workspace: Path) -> None:
    with SyncClient(server.url, server.token) as client:
        session = client.create_session(location_path=str(workspace), title="plain")
        worker = client.add_worker(session.id)
        with client.terminal(session.id, worker.id) as terminal:
            terminal.write(b"echo hello; exit 3\n")
            *_, last = terminal
        assert last == ExitFrame(3, None)
        assert b"hello" in b"".join(piece.data for piece in client.output(session.id, worker.id))
        types = [event.type for event in islice(client.follow(session.id), 4)]
        assert types == ["session_start", "worker_spawning", "worker_ready", "worker_exited"]
        with pytest.raises(NotFound):
            client.session("nothing")


async def test_the_synchronous_client_uses_sessions_terminals_and_events(
    server: Server, workspace: Path
) -> None:
    async with asyncio.timeout(60):
        await asyncio.to_thread(use_every_feature, server, workspace)


async def test_errors_of_a_terminal_reach_its_reader(server: Server) -> None:
    def read() -> None:
        with (
            SyncClient(server.url, server.token) as client,
            client.terminal("nothing", "nothing") as terminal,
        ):
            list(terminal)

    with pytest.raises(NotFound):
        await asyncio.to_thread(read)


def test_the_synchronous_client_has_every_method_of_the_asynchronous_one() -> None:
    own = {name for name in vars(Client) if not name.startswith("_")}
    inherited = {name for each in Client.__mro__[1:-1] for name in vars(each) if not name.startswith("_")}
    assert own | inherited <= {name for name in dir(SyncClient) if not name.startswith("_")}
