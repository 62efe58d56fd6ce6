"""Every command of the README is typed in order, by a user with an empty home, in a fresh clone."""

import asyncio
import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx
import pytest

from bullpen.cli import app, turn, wait
from support.internal_errors import find_internal_error
from support.ports import free_port
from support.server import end_processes_of, processes_of

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PROMPT = "reader> "
CLOCK = r"\d\d:\d\d:\d\d"
DETACH = "\x1d"
STYLE = re.compile(r"\x1b\[[0-9;?]*[a-z]")
SETUP_SECONDS = 600  # to install everything into the clone, on a busy machine
# Programs that the README asks for, and those of any Linux system that the Makefile and the commands use.
PROGRAMS = {"git", "make"}
BASE_PROGRAMS = {"bash", "date", "echo", "env", "find", "mkdir", "sh", "sleep", "touch"}
# Variables with which this machine reaches package registries.
NETWORK = re.compile(
    r"(pip|npm_config|ssl_cert|node_extra_ca)_.*|.*_proxy|.*_ca_(bundle|certs)", re.IGNORECASE
)


def commands() -> list[str]:
    """Return the commands of the README, one per line."""
    blocks = BLOCK.findall((ROOT / "README.md").read_text())
    return [line.split("  # ")[0].strip() for block in blocks for line in block.splitlines()]


class ShellWindow:
    """A pseudo-terminal with a shell."""

    def __init__(self, master: int) -> None:
        self._master = master
        self._unread = ""
        self._more = asyncio.Event()

    @classmethod
    @asynccontextmanager
    async def open(cls, directory: Path, env: dict[str, str]) -> AsyncIterator["ShellWindow"]:
        master, slave = pty.openpty()
        shell = ["/bin/bash", "--norc", "--noprofile", "-i"]
        process = subprocess.Popen(
            shell, cwd=directory, env=env, stdin=slave, stdout=slave, stderr=slave, start_new_session=True
        )
        os.close(slave)
        window = cls(master)
        loop = asyncio.get_running_loop()
        loop.add_reader(master, window._read)
        try:
            await window.until(PROMPT)
            yield window
        finally:
            loop.remove_reader(master)
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            os.close(master)

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    async def until(self, pattern: str, seconds: float = 60) -> str:
        """Wait for a pattern. Return the output up to it, which later calls do not see."""
        try:
            async with asyncio.timeout(seconds):
                while not (found := re.search(pattern, self._unread)):
                    self._more.clear()
                    await self._more.wait()
        except TimeoutError:
            raise AssertionError(f"{pattern} was not shown but: {self._unread!r}") from None
        shown, self._unread = self._unread[: found.end()], self._unread[found.end() :]
        return shown

    async def run(self, command: str) -> str:
        """Type a command and wait for the next prompt. Return the output."""
        self.type(f"{command}\r")
        return await self.until(PROMPT)

    def _read(self) -> None:
        try:
            self._unread += os.read(self._master, 65536).decode(errors="replace")
        except OSError:  # the shell is gone
            asyncio.get_running_loop().remove_reader(self._master)
        self._more.set()


class ReadmeReader:
    """Runs the commands of the README; `steps` checks the result of each command."""

    def __init__(self, clone: Path, data: Path, server_window: ShellWindow, window: ShellWindow) -> None:
        self._clone = clone
        self._data = data
        self._server_window = server_window
        self._window = window
        self._address = ""
        self._pid = 0  # of the shell in the terminal worker
        self.steps: dict[str, Callable[[str], Awaitable[None]]] = {
            "make serve": self._serve,
            "export PATH=": self._run,
            "git init": self._run,
            "bullpen run": self._run_agent,
            "bullpen new --name shell": self._attach,
            "while sleep 1; do date; done": self._start_output_and_detach,
            "bullpen ls": self._expect(r"shell .*terminal"),
            "kill -9 $(": self._kill,
            "bullpen attach shell": self._attach_again,
            "bullpen inbox": self._expect(r"permission .* Edit hello\.md"),
            "bullpen approve edit": self._expect(r"allowed: demo"),
            "bullpen wait edit": self._run,
            "bullpen diff edit": self._expect(r"\+\+\+ b/hello\.md"),
            "bullpen logs edit": self._expect(r"## demo says"),
            "bullpen agents ls": self._expect(r"claude .*npm install"),
            "bullpen doctor": self._expect(r"\bserver +\S+, answers"),
            "bullpen stop $(": self._stop_server,
        }

    async def follow(self, command: str) -> None:
        step = next((step for head, step in self.steps.items() if command.startswith(head)), None)
        assert step, f"no step runs this command of the README: {command}"
        await step(command)

    async def _run(self, command: str) -> None:
        shown = await self._window.run(command)
        assert "command not found" not in shown, shown

    def _expect(self, pattern: str) -> Callable[[str], Awaitable[None]]:
        async def expect(command: str) -> None:
            shown = STYLE.sub("", await self._window.run(command))
            assert re.search(pattern, shown.removeprefix(command)), shown

        return expect

    async def _serve(self, command: str) -> None:
        self._server_window.type(f"{command}\r")
        shown = await self._server_window.until(rf"#code=\S+|{PROMPT}", SETUP_SECONDS)
        self._address = re.findall(r"(http://127\.0\.0\.1:\d+)/#code=", shown)[-1]
        assert (self._clone / ".venv" / "bin" / "bullpen").exists()
        for tool in (".venv/bin/pytest", "ui/node_modules/vitest"):
            assert not (self._clone / tool).exists(), f"{tool} is not needed to serve"
        async with httpx.AsyncClient(trust_env=False, verify=False) as http:
            assert '<script type="module"' in (await http.get(self._address)).raise_for_status().text

    async def _run_agent(self, command: str) -> None:
        self._window.type(f"{command}\r")
        await self._allow_directory()
        await self._window.until(r"asks")
        await self._window.until(PROMPT)

    async def _allow_directory(self) -> None:
        await self._window.until(r"Allow sessions in \S+\? \[Y/n\] ")
        self._window.type("\r")

    async def _attach(self, command: str) -> None:
        self._window.type(f"{command}\r")
        await self._window.until(r"attached to shell")
        await self._window.until(r"[$#] ")

    async def _start_output_and_detach(self, command: str) -> None:
        self._window.type(f"{command}\r")
        await self._until_output_continues()
        await self._detach()

    async def _attach_again(self, command: str) -> None:
        self._window.type(f"{command}\r")
        await self._window.until(r"attached to shell")
        await self._until_output_continues()
        assert await self._shell_pid() == self._pid
        await self._detach()

    async def _shell_pid(self) -> int:
        token = (self._data / "token").read_text().strip()
        headers = {"Authorization": f"Bearer {token}"}
        async with httpx.AsyncClient(trust_env=False, verify=False, headers=headers) as http:
            sessions: list[dict[str, Any]] = (await http.get(f"{self._address}/api/sessions")).json()[
                "sessions"
            ]
        (pid,) = [
            worker["pid"]
            for session in sessions
            for worker in session["workers"]
            if worker["type"] == "terminal" and worker["state"] == "active"
        ]
        os.kill(pid, 0)  # raises if the process has ended
        return int(pid)

    async def _until_output_continues(self) -> None:
        for _ in range(2):
            await self._window.until(CLOCK)

    async def _detach(self) -> None:
        self._window.type(DETACH)
        await self._window.until(r"detached from")
        await self._window.until(PROMPT)

    async def _kill(self, command: str) -> None:
        self._pid = await self._shell_pid()
        await self._window.run(command)
        assert "Killed" in await self._server_window.until(PROMPT)

    async def _stop_server(self, command: str) -> None:
        await self._window.run(command)
        assert "Error" not in await self._server_window.until(PROMPT)
        assert "Bullpen is not running here" in await self._window.run("bullpen status --pid")
        async with asyncio.timeout(60):
            while processes_of(self._data):  # the keeper ends a moment after its last child
                await asyncio.sleep(0.05)


@pytest.fixture
def clone() -> Iterator[Path]:
    """Return a new clone of the last commit in /srv, outside of every home directory."""
    with TemporaryDirectory(dir="/srv") as directory:
        path = Path(directory, "bullpen")
        subprocess.run(["git", "clone", "--quiet", "--depth", "1", ROOT.as_uri(), path], check=True)
        yield path


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """Return a directory with the programs that the README asks for, and a base system."""
    directory = tmp_path / "programs"
    directory.mkdir()
    for name in PROGRAMS | BASE_PROGRAMS:
        (directory / name).symlink_to(Path("/usr/bin", name))
    python = (
        directory / "python3"
    )  # a script, since Python finds its library beside the file that a link names
    python.write_text(f'#!/bin/sh\nexec {sys.base_prefix}/bin/python3 "$@"\n')
    python.chmod(0o755)
    return directory


@pytest.mark.long
@pytest.mark.timeout(900)  # it installs everything, on a machine that may be busy with other tests
async def test_every_command_of_the_readme_does_what_it_says(
    tmp_path: Path, clone: Path, programs: Path
) -> None:
    """The packages come from the caches of the user who runs this test, as far as these have them."""
    home = tmp_path / "home"
    home.mkdir()
    data = home / ".local" / "share" / "bullpen"
    env = {name: value for name, value in os.environ.items() if NETWORK.fullmatch(name)} | {
        "HOME": str(home),
        "PATH": str(programs),
        "SHELL": "/bin/bash",
        "TERM": "xterm-256color",
        "PS1": PROMPT,
        "BULLPEN_PORT": str(free_port()),
        "BULLPEN_KEEPER_PATIENCE": "1",  # seconds; a user does not wait until the keeper ends
        "PIP_CACHE_DIR": str(Path.home() / ".cache" / "pip"),
        "npm_config_cache": str(Path.home() / ".npm"),
    }
    try:
        async with ShellWindow.open(clone, env) as server_window, ShellWindow.open(clone, env) as window:
            reader = ReadmeReader(clone, data, server_window, window)
            for command in commands():
                await reader.follow(command)
        assert find_internal_error((data / "logs" / "server.log").read_text(), data) is None
    finally:
        end_processes_of(data)


def test_the_readme_has_the_exit_codes_of_the_command_line() -> None:
    listed = re.findall(
        r"\b(\d) (fine|failed|wrong use|a person is needed)", (ROOT / "README.md").read_text()
    )
    codes = (turn.DONE, turn.FAILED, app.WRONG_USE, turn.NEEDS_A_PERSON)
    assert [int(number) for number, _ in listed] == list(codes)
    assert (app.FAILED, wait.NEEDS_A_PERSON) == (turn.FAILED, turn.NEEDS_A_PERSON)
