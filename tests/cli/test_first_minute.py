"""The first minute of a new user: the exact text of every terminal window after every command."""

import os
import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from support.ports import free_port
from support.server import end_processes_of
from support.tmux import PROMPT, Tmux

PROJECT = Path(__file__).parents[2]
SHELL_PROMPT = "inside>"
HINT = "Ctrl-] or ~. detaches"
# Texts that differ in every run.
VARIABLE_TEXTS = (
    (re.compile(r"\b[0-9a-f]{8}\b"), "<id>"),
    (re.compile(r"\b\d\d:\d\d:\d\d\b"), "<time>"),
    (re.compile(r"\b\d+[sm]$", re.MULTILINE), "<age>"),
    (re.compile(r"pid=\d+"), "pid=<pid>"),
    (re.compile(r"Bullpen \d\S+"), "Bullpen <version>"),
    (re.compile(r"127\.0\.0\.1:\d+"), "<address>"),
    (re.compile(r"#code=\S+"), "#code=<code>"),
)


def normalized(screen: str) -> str:
    """Return a screen with variable texts replaced and without empty lines at its end."""
    text = "\n".join(line.rstrip() for line in screen.splitlines()).strip("\n")
    for pattern, word in VARIABLE_TEXTS:
        text = pattern.sub(word, text)
    return text


class TerminalUser:
    """A user of one terminal window."""

    def __init__(self, window: Tmux) -> None:
        self.window = window

    async def until_shown_with_hint(self, *lines: str) -> None:
        """Wait until the window shows exactly these lines, and the hint to detach in its last row."""

        def shows(screen: str) -> bool:
            above, _, last = screen.rstrip("\n").rpartition("\n")
            return HINT in last and normalized(above) == "\n".join(lines)

        await self.window.until(shows)

    async def until_shown(self, *lines: str) -> None:
        """Wait until the window shows exactly these lines."""
        expected = "\n".join(lines)
        try:
            await self.window.until(lambda screen: normalized(screen) == expected)
        except AssertionError:
            assert normalized(self.window.screen()) == expected

    async def enter(self, line: str) -> None:
        await self.window.enter(line)

    async def clear(self, prompt: str = PROMPT) -> None:
        await self.window.type("C-l")
        await self.until_shown(prompt)

    async def check_output(self, command: str, *output: str) -> None:
        """Run a command in a cleared window, and check its whole output."""
        await self.clear()
        await self.enter(command)
        await self.until_shown(f"{PROMPT} {command}", *output, PROMPT)


class Home(NamedTuple):
    """The home directory of a new user, who opens terminal windows."""

    directory: Path
    env: dict[str, str]

    @asynccontextmanager
    async def open_window(self, name: str, rows: int = 16) -> AsyncIterator[TerminalUser]:
        async with Tmux.open(self.directory / name, self.env, cols=80, rows=rows) as window:
            yield TerminalUser(window)


@pytest.fixture
async def home(tmp_path: Path) -> AsyncIterator[Home]:
    directory = tmp_path / "user"
    directory.mkdir()
    (directory / ".bashrc").write_text(f"PS1='{SHELL_PROMPT} '\n")
    env = {
        "HOME": str(directory),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "TERM": "xterm-256color",
        "LANG": "C.UTF-8",
        "SHELL": "/bin/bash",
        "BULLPEN_PORT": str(free_port()),
        "PROJECT": str(PROJECT),
        "SSH_CONNECTION": "so that no browser is opened",
    }
    yield Home(directory, env)
    end_processes_of(directory / ".local" / "share" / "bullpen")


async def test_the_first_minute_shows_exactly_these_texts(home: Home) -> None:
    async with home.open_window("first", rows=40) as operator, home.open_window("second") as user:
        await operator.enter('make -C "$PROJECT" setup && echo "all set"')
        await operator.window.until(lambda screen: "\nall set\n" in normalized(screen))
        await operator.clear()
        await user.check_output(
            "bullpen",
            "Bullpen <version> runs coding agents and never loses a session.",
            "",
            "Bullpen is not running here; start it with: bullpen serve",
            "Then open a terminal:  bullpen new",
            "Everything else:       bullpen --help",
        )
        await operator.enter("bullpen serve")
        shown = normalized(await operator.window.until("ready"))
        assert shown.splitlines()[:2] == [
            f"{PROMPT} bullpen serve",
            "Bullpen <version> is at http://<address>/#code=<code>",
        ]

        await user.clear()
        await user.enter("bullpen new --name first")
        await user.until_shown_with_hint(SHELL_PROMPT)
        await user.enter("echo $((20 + 22))")
        await user.until_shown(f"{SHELL_PROMPT} echo $((20 + 22))", "42", SHELL_PROMPT)
        await user.window.type("C-]")
        goodbye = "[detached from first/terminal; come back with: bullpen attach <id>]"
        await user.window.until(lambda screen: normalized(screen).endswith(f"{goodbye}\n{PROMPT}"))

        await user.check_output(
            "bullpen ls",
            "   TITLE  ID        STATE  WORKERS   DIRECTORY                   AGE",
            "○  first  <id>  idle   terminal  ~/bullpen/session-<id>  <age>",
        )
        await user.clear()
        await user.enter("bullpen logs first/terminal")
        await user.until_shown(
            f"{PROMPT} bullpen logs first/terminal",
            f"{SHELL_PROMPT} echo $((20 + 22))",
            "42",
            f"{SHELL_PROMPT} {PROMPT}",
        )
        await user.clear()
        await user.enter("bullpen attach first")
        await user.until_shown_with_hint(f"{SHELL_PROMPT} echo $((20 + 22))", "42", SHELL_PROMPT)
        await user.window.type("C-]")
        await user.window.until(lambda screen: normalized(screen).endswith(f"{goodbye}\n{PROMPT}"))

        await user.check_output("bullpen stop first", "stopped first")
        await user.check_output("bullpen ls", "no sessions; start one with: bullpen new")
        await user.check_output(
            "bullpen ls --all",
            "   TITLE  ID        STATE      WORKERS  DIRECTORY                   AGE",
            "○  first  <id>  completed  none     ~/bullpen/session-<id>  <age>",
        )
        await operator.window.type("C-c")
        await operator.window.until(lambda screen: screen.rstrip().endswith(PROMPT))
        await user.check_output(
            "bullpen ls", "bullpen: Bullpen is not running here; start it with: bullpen serve"
        )
