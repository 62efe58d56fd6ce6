"""What an agent must be able to do at the level workspace, done by a real server, agent and terminal.

All packages come from a registry on loopback; pip and npm use their caches, environments and scripts as ever.
"""

import json
import os
import re
import shlex
import sys
from ast import literal_eval
from collections.abc import AsyncIterator
from pathlib import Path
from typing import ClassVar

import pytest

from bullpen.keeper.marker import find_marked
from bullpen.workers.children import ChildHandles
from support.listening_programs import ports_of, type_line, until_ports
from support.package_registries import NAME, npm_project, package_registry
from support.ports import free_port
from support.repositories import Repo
from support.server import Server
from support.session_client import SessionClient, define_scripted

PROGRAMS = str(Path(sys.executable).parent)  # node and npm are there
SCRIPT = "document.querySelector('p').textContent = `${6 * 7} from a script`"
PAGE = f"<!doctype html><p></p><script>{SCRIPT}</script>"


class WorkingAgent(SessionClient):
    """An agent at the level workspace, whose home is not its workspace."""

    seconds: ClassVar[float] = 180.0

    async def run(self, script: str) -> str:
        """Let the agent run a script in a terminal; return the output, or fail."""
        (self.server.workspace / "site/run.sh").write_text(f"set -e\n{script}\n")
        before = len(await self.agent_text())
        await self.run_turn("[[terminal 'sh ./run.sh']]")
        text = (await self.agent_text())[before:]
        found = re.fullmatch(r"exit (\d+) said (.*)", text, re.DOTALL)
        assert found, text
        output: str = literal_eval(found[2])
        assert found[1] == "0", output
        return output


@pytest.fixture
async def agent(server: Server, tmp_path: Path) -> AsyncIterator[WorkingAgent]:
    home = tmp_path / "user"
    (home / ".cache").mkdir(parents=True)
    (home / ".npm").mkdir()
    (home / "secret").write_text("secret")
    server.set(HOME=str(home), PATH=f"{PROGRAMS}:{os.environ['PATH']}", NO_PROXY="127.0.0.1")
    await server.restart()
    repository = Repo(server.workspace / "site")
    await define_scripted(server)
    agent = await WorkingAgent.begin(server, locationPath=str(repository.path))
    assert (await agent.worker())["sandbox"] == "workspace"
    assert await agent.run(f"test ! -e {home}/secret && echo hidden") == "hidden\n"
    yield agent


async def test_pip_installs_a_wheel_into_a_virtual_environment(agent: WorkingAgent) -> None:
    with package_registry() as registry:
        output = await agent.run(f"""
            python3 -m venv venv
            venv/bin/pip install --quiet --isolated -i {registry}/simple {NAME}
            venv/bin/{NAME}""")
    assert output.endswith("hello from the wheel\n")


async def test_npm_ci_installs_a_package_and_runs_its_scripts(
    agent: WorkingAgent, server: Server, tmp_path: Path
) -> None:
    with package_registry() as registry:
        for name, text in npm_project(registry).items():
            (server.workspace / "site" / name).write_text(text)
        output = await agent.run(f"""
            npm ci --registry {registry} --no-audit --no-fund --no-update-notifier --foreground-scripts
            node_modules/.bin/{NAME}""")
    assert output.endswith("hello from npm, installed: yes\n")
    assert list((tmp_path / "user/.npm/_cacache").iterdir())  # the cache is that of the user


async def test_a_browser_of_the_agent_renders_the_page_of_its_dev_server(
    agent: WorkingAgent, server: Server
) -> None:
    port = free_port()
    (server.workspace / "site/index.html").write_text(PAGE)
    output = await agent.run(f"""
        python3 -m http.server {port} --bind 127.0.0.1 >/dev/null 2>&1 &
        until curl --silent --fail --output /dev/null http://127.0.0.1:{port}/; do :; done
        page="http://127.0.0.1:{port}/ --dump-dom --screenshot=page.png"
        chromium-headless-shell --no-sandbox $page 2>/dev/null
        kill $!""")
    assert "<p>42 from a script</p>" in output
    assert (server.workspace / "site/page.png").read_bytes().startswith(b"\x89PNG")


async def test_a_dev_server_of_the_agent_is_found_and_can_be_reached(
    agent: WorkingAgent, server: Server
) -> None:
    """The preview of the page is a frame with this address; tests/ui/test_preview.py shows one."""
    port = free_port()
    (server.workspace / "site/index.html").write_text("hello from the workspace")
    params = json.dumps({"command": "python3", "args": ["-m", "http.server", str(port)]})
    await agent.run_turn(f"[[ask method=terminal/create {shlex.quote(f'params={params}')}]]")
    await until_ports(server, agent.id, {port})
    [found] = await ports_of(server, agent.id)
    assert (found["address"], found["command"]) == ("0.0.0.0", "python3")
    answer = await server.http.get(f"http://127.0.0.1:{port}/")
    assert answer.text == "hello from the workspace"
    await server.call("POST", f"{agent.path}/complete")
    await until_ports(server, agent.id, set())


async def test_vim_edits_a_file_in_a_sandboxed_terminal(agent: WorkingAgent, server: Server) -> None:
    terminal = await server.new_terminal(agent.id, sandbox="workspace")
    assert terminal["sandbox"] == "workspace"
    await type_line(server, terminal, "vim -n new.txt; exit")
    await type_line(server, terminal, "ihello from vim\x1b:x")
    await server.worker_in(agent.id, terminal["id"], "exited")
    assert (server.workspace / "site/new.txt").read_text() == "hello from vim\n"


async def test_a_turn_in_the_sandbox_continues_while_the_server_is_killed(
    agent: WorkingAgent, server: Server
) -> None:
    """tests/faults kills servers many times; its agents run at this level too, which is the default."""
    (server.workspace / "site/run.sh").write_text("while ! test -e go; do :; done; echo gone on >> file\n")
    prompted = await agent.prompt("[[chunk before]] [[terminal 'sh ./run.sh']]")
    await agent.wait_for_event("tool_call", after=prompted["seq"])
    await server.kill()
    (server.workspace / "site/go").touch()
    await server.start()
    start = await agent.wait_for_event("turn_start", promptId=prompted["promptId"])
    await agent.wait_for_event("turn_end", after=start["seq"])
    assert (server.workspace / "site/file").read_text() == "gone on\n"
    assert "exit 0" in await agent.agent_text()
    sandboxed = ChildHandles(server.home).home_id
    assert find_marked(sandboxed)  # the agent still runs, and is found from outside
