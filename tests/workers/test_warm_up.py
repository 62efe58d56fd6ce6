"""A server prepares for the first terminal before a user opens one."""

import asyncio
from pathlib import Path

from support.server import SECONDS, Server


async def test_a_ready_server_loads_the_emulator_and_starts_a_keeper_before_the_first_terminal(
    server: Server,
) -> None:
    async with asyncio.timeout(SECONDS):
        while not ("ghostty" in Path(f"/proc/{server.pid}/maps").read_text() and _keepers(server)):
            await asyncio.sleep(0.02)
    before = _keepers(server)
    session = await server.new_session()
    await server.new_terminal(session["id"])
    assert _keepers(server) == before


def _keepers(server: Server) -> set[str]:
    return {path.name for path in (server.home / "keeper").glob("*.sock")}
