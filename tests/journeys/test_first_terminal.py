"""The first terminal after a start opens as fast as later ones; bench/loaded_server.py measures how fast."""

import asyncio
from pathlib import Path

import psutil

from support.server import Server, processes_of

NEW_PROCESS = ("env",)  # not a fork of the tests' process, which has loaded everything


async def test_what_the_first_terminal_needs_is_ready_before_a_user_opens_it(
    tmp_path: Path, workspace: Path
) -> None:
    server = Server(tmp_path / "home", workspace)
    await server.start(prefix=NEW_PROCESS)
    try:
        async with asyncio.timeout(60):
            while not (keeper_runs(server) and emulator_is_loaded(server)):
                await asyncio.sleep(0.05)
        assert (await server.call("GET", "/api/sessions"))["total"] == 0
    finally:
        await server.close()


def keeper_runs(server: Server) -> bool:
    """Return whether a process of the server is a keeper."""
    return any(
        "bullpen.keeper" in " ".join(psutil.Process(pid).cmdline()) for pid in processes_of(server.home)
    )


def emulator_is_loaded(server: Server) -> bool:
    return "libghostty" in Path(f"/proc/{server.pid}/maps").read_text()
