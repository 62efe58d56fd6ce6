"""Runs that an earlier version has started stay as they were; what starts afterwards has a sandbox.

`tests/golden/landed/source.tar.xz` has the package of 2026-11-19, the last version without sandboxes.
"""

import tarfile
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest

from support.listening_programs import type_line
from support.scripted_agent.command import SCRIPTED_AGENT
from support.server import Server
from support.session_client import SessionClient

SOURCE = Path(__file__).parents[1] / "golden" / "landed" / "source.tar.xz"


@pytest.fixture
async def upgraded(tmp_path: Path, workspace: Path) -> AsyncIterator[Server]:
    """Return a server of the earlier version; `upgrade` replaces it by one of this version."""
    with tarfile.open(SOURCE) as archive:
        archive.extractall(tmp_path / "earlier", filter="data")
    home = tmp_path / "user"
    home.mkdir()
    (home / "secret").write_text("secret")
    server = Server(tmp_path / "home", workspace, {"HOME": str(home)})
    server.set(PYTHONPATH=str(tmp_path / "earlier/src"))
    await server.start()
    assert (await server.http.get("/api/sandbox")).status_code == 404
    yield server
    await server.close()


async def upgrade(server: Server) -> None:
    """Kill the server, and start that of this version; the keeper and its children stay."""
    await server.kill()
    server.set(PYTHONPATH="")
    await server.start()
    assert (await server.call("GET", "/api/sandbox"))["mechanism"] == "bubblewrap"


async def begin(server: Server, workspace: Path) -> SessionClient:
    command = ["/usr/bin/env", "python3", str(SCRIPTED_AGENT), "--journal", str(workspace / "journal")]
    await server.call(
        "PUT", "/api/agents/scripted", 200, json={"name": "Scripted", "kind": "acp", "command": command}
    )
    return await SessionClient.begin(server)


async def test_an_agent_and_a_terminal_of_an_earlier_version_continue_as_they_were(
    upgraded: Server, workspace: Path, tmp_path: Path
) -> None:
    client = await begin(upgraded, workspace)
    terminal = await upgraded.new_terminal(client.id)
    agent = (await upgraded.call("GET", f"{client.path}/workers"))["workers"][0]
    keeper = psutil.Process(agent["pid"]).ppid()
    prompted = await client.prompt(f"[[chunk before]] [[wait_for {workspace}/go]] [[chunk ' and after']]")
    await client.wait_for_event("agent_message", text="before")
    await upgrade(upgraded)
    (workspace / "go").touch()
    start = await client.wait_for_event("turn_start", promptId=prompted["promptId"])
    await client.wait_for_event("turn_end", after=start["seq"])
    assert await client.agent_text() == "before and after"

    # It has no sandbox, like the terminals that it orders.
    await client.run_turn(f"[[terminal 'cat {tmp_path}/user/secret']]")
    assert "exit 0 said 'secret'" in await client.agent_text()
    workers = {each["id"]: each for each in (await upgraded.call("GET", f"{client.path}/workers"))["workers"]}
    assert (workers[agent["id"]]["pid"], workers[agent["id"]]["sandbox"]) == (agent["pid"], None)
    assert (workers[terminal["id"]]["pid"], workers[terminal["id"]]["sandbox"]) == (terminal["pid"], None)
    assert psutil.Process(agent["pid"]).ppid() == keeper
    await type_line(upgraded, terminal, f"cat {tmp_path}/user/secret > typed; exit")
    await upgraded.worker_in(client.id, terminal["id"], "exited")
    assert (workspace / "typed").read_text() == "secret"


async def test_a_restart_gives_an_agent_of_an_earlier_version_its_sandbox(
    upgraded: Server, workspace: Path, tmp_path: Path
) -> None:
    client = await begin(upgraded, workspace)
    agent = await client.worker()
    (workspace / "readme").write_text("hello")
    await client.run_turn("[[chunk before]]")
    await upgrade(upgraded)
    restart = f"{client.path}/workers/{agent['id']}/restart"
    await upgraded.call("POST", restart, 200, json={"continueConversation": True})
    await client.run_turn(f"[[terminal 'cat {tmp_path}/user/secret || cat readme']]")
    assert "exit 0 said" in await client.agent_text()
    assert "secret'" not in await client.agent_text()
    restarted = await upgraded.call("GET", f"{client.path}/workers/{agent['id']}")
    assert (restarted["run"], restarted["sandbox"]) == (2, "workspace")
