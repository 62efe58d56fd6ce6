"""Requests succeed after cuts and restarts, and have their effect once."""

import asyncio
import random
from pathlib import Path

import pytest

from bullpen.client import Client, ConnectionLost, ServerNotRunning
from support.repositories import Repo
from support.server import Server
from support.tcp_proxy import TcpProxy


async def test_a_request_whose_response_is_cut_off_has_one_effect(
    cut_client: Client, client: Client, wire: TcpProxy, workspace: Path
) -> None:
    await cut_client.health()
    generator = random.Random(3)
    wire.should_cut = lambda direction, _nth: generator.random() < (0.3 if direction == "down" else 0.1)
    for number in range(12):
        await cut_client.create_session(location_path=str(workspace), title=f"session {number}")
    wire.should_cut = lambda _direction, _nth: False
    assert wire.cuts > 2
    assert sorted(session.title for session in await client.sessions()) == sorted(
        f"session {number}" for number in range(12)
    )


async def test_a_purge_whose_response_is_cut_off_is_no_error(
    cut_client: Client, client: Client, wire: TcpProxy, workspace: Path
) -> None:
    session = await cut_client.create_session(location_path=str(workspace))
    cut_once = iter([True])
    wire.should_cut = lambda direction, _nth: direction == "down" and next(cut_once, False)
    await cut_client.delete_session(session.id, purge=True)
    assert wire.cuts == 1
    assert await client.sessions() == []


async def test_a_removal_whose_response_is_cut_off_returns_the_entry_in_the_trash(
    cut_client: Client, client: Client, wire: TcpProxy, workspace: Path
) -> None:
    repository = await cut_client.add_repository(str(Repo(workspace / "site").path))
    await client.add_worktree(repository.id, branch="fix")
    await client.remove_worktree(repository.id, "fix")
    await client.add_worktree(repository.id, branch="fix", existing=True)
    cut_once = iter([True])
    wire.should_cut = lambda direction, _nth: direction == "down" and next(cut_once, False)
    removed = await cut_client.remove_worktree(repository.id, "fix")
    assert wire.cuts == 1
    trash = (await client.worktrees(repository.id)).trash
    assert removed == max(trash, key=lambda each: each.removed_at)


async def test_requests_wait_for_a_server_that_is_being_restarted(client: Client, server: Server) -> None:
    session = await client.create_session(location_path=str(server.workspace))
    await server.kill()
    async with asyncio.timeout(60), asyncio.TaskGroup() as tasks:
        asking = tasks.create_task(client.session(session.id))
        await server.start()
        assert (await asking).id == session.id


async def test_a_request_fails_when_the_patience_has_passed(wire: TcpProxy, server: Server) -> None:
    async with Client(wire.url, server.token, patience=0.3) as client:
        await client.health()
        wire.should_cut = lambda _direction, _nth: True
        with pytest.raises(ConnectionLost):
            await client.sessions()
        await server.kill()
        with pytest.raises((ConnectionLost, ServerNotRunning)):
            await client.sessions()
