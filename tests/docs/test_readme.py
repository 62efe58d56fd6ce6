"""Every command of the README is typed in order, in a real terminal, with a real server."""

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

import pytest

from bullpen.cli import app, turn, wait
from support.server import Server, processes_of

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PROMPT = "reader> "
CLOCK = r"\d\d:\d\d:\d\d"
DETACH = "\x1d"


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
            yield window
        finally:
            loop.remove_reader(master)
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            os.close(master)

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    async def until(self, pattern: str) -> str:
        """Wait for a pattern. Return the output up to it, which later calls do not see."""
        try:
            async with asyncio.timeout(60):
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

    def __init__(self, server: Server, window: ShellWindow) -> None:
        self._server = server
        self._window = window
        self._pid = 0  # of the shell in the terminal worker
        self.steps: dict[str, Callable[[str], Awaitable[None]]] = {
            "make serve": self._serve,
            "make test": self._find_target,
            "export PATH=": self._run,
            "bullpen new --name first": self._attach,
            "while sleep 1; do date; done": self._start_output_and_detach,
            "bullpen ls": self._expect(r"first .*working"),
            "kill -9 $(": self._kill,
            "bullpen attach first": self._attach_again,
            "bullpen url": self._expect(r"http://127\.0\.0\.1:\d+/#code=\S+"),
            "bullpen logs first/terminal": self._expect(CLOCK),
            "bullpen show first": self._expect(r"terminal\s+\w+\s+terminal"),
            "bullpen stop first": self._expect(r"stopped first"),
            "bullpen stop $(": self._stop_server,
            "bullpen --help": self._expect(r"attach"),
            'bullpen run "help" --agent demo': self._expect(r"plan"),
            "bullpen inbox": self._expect(r"nothing waits for you"),
            "bullpen doctor": self._expect(r"\bserver +\S+, answers"),
        }

    async def follow(self, command: str) -> None:
        step = next((step for head, step in self.steps.items() if command.startswith(head)), None)
        assert step, f"no step runs this command of the README: {command}"
        await step(command)

    async def _run(self, command: str) -> None:
        await self._window.run(command)

    def _expect(self, pattern: str) -> Callable[[str], Awaitable[None]]:
        async def expect(command: str) -> None:
            shown = await self._window.run(command)
            assert re.search(pattern, shown.removeprefix(command)), shown

        return expect

    async def _find_target(self, command: str) -> None:
        """Check that the target exists. This test cannot run it, because it would run all tests."""
        target = command.split()[1]
        assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE)

    async def _serve(self, command: str) -> None:
        await self._find_target(command)
        if self._server.process is None or self._server.process.poll() is not None:
            await self._server.start()

    async def _attach(self, command: str) -> None:
        self._window.type(f"{command}\r")
        await self._window.until(r"Allow sessions in /srv/\S+\? \[Y/n\] ")
        self._window.type("\r")
        await self._window.until(r"attached to first")
        await self._window.until(r"[$#] ")

    async def _start_output_and_detach(self, command: str) -> None:
        self._window.type(f"{command}\r")
        await self._until_output_continues()
        await self._detach()

    async def _attach_again(self, command: str) -> None:
        self._window.type(f"{command}\r")
        await self._window.until(r"attached to first")
        await self._until_output_continues()
        assert await self._shell_pid() == self._pid
        await self._detach()

    async def _shell_pid(self) -> int:
        (session,) = (await self._server.call("GET", "/api/sessions"))["sessions"]
        (worker,) = session["workers"]
        assert worker["state"] == "active"
        os.kill(worker["pid"], 0)  # raises if the process has ended
        pid: int = worker["pid"]
        return pid

    async def _until_output_continues(self) -> None:
        for _ in range(2):
            await self._window.until(CLOCK)

    async def _detach(self) -> None:
        self._window.type(DETACH)
        await self._window.until(r"detached from")
        await self._window.until(PROMPT)

    async def _kill(self, command: str) -> None:
        assert self._server.process is not None
        self._pid = await self._shell_pid()
        await self._window.run(command)
        assert await asyncio.to_thread(self._server.process.wait, 60) == -signal.SIGKILL

    async def _stop_server(self, command: str) -> None:
        assert self._server.process is not None
        await self._window.run(command)
        assert await asyncio.to_thread(self._server.process.wait, 60) == 0
        assert "Bullpen is not running here" in await self._window.run("bullpen status --pid")
        async with asyncio.timeout(60):
            while processes_of(self._server.home):  # the keeper ends a moment after the server
                await asyncio.sleep(0.05)


@pytest.fixture
def checkout() -> Iterator[Path]:
    """Return a new checkout in /srv, outside of every home directory."""
    with TemporaryDirectory(dir="/srv") as directory:
        path = Path(directory, "bullpen")
        subprocess.run(["git", "init", "-q", path], check=True)
        (path / ".venv").symlink_to(Path(sys.prefix))
        yield path


async def test_every_command_of_the_readme_does_what_it_says(tmp_path: Path, checkout: Path) -> None:
    """The home directory is empty, and no setting names the workspace roots."""
    data = tmp_path / ".local" / "share" / "bullpen"
    data.parent.mkdir(parents=True)
    server = Server(data, tmp_path, {"AGENT_WORKSPACE_ROOT": "", "BULLPEN_KEEPER_PATIENCE": "2"})
    env = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "TERM": "xterm-256color", "PS1": PROMPT}
    try:
        async with ShellWindow.open(checkout, env) as window:
            await window.until(PROMPT)
            reader = ReadmeReader(server, window)
            for command in commands():
                await reader.follow(command)
    finally:
        await server.close()


def test_the_readme_names_the_programs_that_the_tests_need() -> None:
    (sentence,) = re.findall(
        r"^The tests drive real programs: (.*?)\.", (ROOT / "README.md").read_text(), re.MULTILINE
    )
    (needed,) = re.findall(
        r"^for tool in (.*); do$", (ROOT / "scripts" / "test-tools").read_text(), re.MULTILINE
    )
    assert sentence.replace(" and ", ", ").split(", ") == needed.split()


def test_the_readme_has_the_exit_codes_of_the_command_line() -> None:
    listed = re.findall(
        r"\b(\d) (fine|failed|wrong use|a person is needed)", (ROOT / "README.md").read_text()
    )
    codes = (turn.DONE, turn.FAILED, app.WRONG_USE, turn.NEEDS_A_PERSON)
    assert [int(number) for number, _ in listed] == list(codes)
    assert (app.FAILED, wait.NEEDS_A_PERSON) == (turn.FAILED, turn.NEEDS_A_PERSON)
