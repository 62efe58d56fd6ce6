"""A server starts on a full disk with the space of its ballast file, and works fully when space is free."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from support.commands import Bullpen
from support.disks import DISK_KINDS, TinyDisk, tiny_disk
from support.server import Server

pytestmark = pytest.mark.skipif("tiny" not in DISK_KINDS, reason="mounting needs root")

SECONDS = 60.0


@pytest.fixture
async def disk(tmp_path: Path) -> AsyncIterator[TinyDisk]:
    (tmp_path / "home").mkdir()
    with tiny_disk(tmp_path / "home") as this:
        yield this


@pytest.fixture
async def server(tmp_path: Path, workspace: Path, disk: TinyDisk) -> AsyncIterator[Server]:
    this = Server(disk.path, workspace)
    yield this
    await this.close()


async def wait_for_address(server: Server) -> None:
    """Wait until `server.json` names the running server, so that the command line finds it."""
    async with asyncio.timeout(SECONDS):
        while not (server.home / "server.json").exists():
            await asyncio.sleep(0.05)
    assert json.loads((server.home / "server.json").read_text()) == {"url": server.url, "pid": server.pid}


async def test_a_server_starts_on_a_disk_that_was_filled_while_no_server_ran(
    server: Server, disk: TinyDisk
) -> None:
    await server.start()
    session = await server.new_session()
    terminal = await server.new_terminal(session["id"])
    assert await server.stop() == 0
    disk.fill()
    await server.start()
    await server.worker_in(session["id"], terminal["id"], "active")
    await server.call("POST", "/api/sessions", 507, json={"locationPath": str(server.workspace)})
    await wait_for_address(server)
    disk.free()
    async with asyncio.timeout(SECONDS):
        while (await server.http.post("/api/sessions", json={})).status_code == 507:
            await asyncio.sleep(0.05)
    assert (disk.path / "bullpen.db.ballast").exists()


async def test_the_server_writes_its_address_when_space_is_free_and_removes_that_of_an_earlier_server(
    server: Server, disk: TinyDisk, tmp_path: Path
) -> None:
    server.set(BULLPEN_DATABASE_URL=f"sqlite:///{tmp_path}/bullpen.db")
    await server.start()
    await server.stop()
    disk.fill()
    await server.start()
    bullpen = Bullpen(server.environment())
    assert "Bullpen is not running here" in (await bullpen("ls")).err
    assert await server.new_session(title="it runs")
    disk.free()
    await wait_for_address(server)
    assert "it runs" in (await bullpen("ls")).out
