"""A new user's first minute, recorded as text: every window step by step, to the letter."""

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
INSIDE = "inside>"
HINT = "Ctrl-] or ~. detaches"
# What differs from one minute to another.
VARIABLE = (
    (re.compile(r"\b[0-9a-f]{8}\b"), "<id>"),
    (re.compile(r"\b\d\d:\d\d:\d\d\b"), "<time>"),
    (re.compile(r"\b\d+[sm]$", re.MULTILINE), "<age>"),
    (re.compile(r"pid=\d+"), "pid=<pid>"),
    (re.compile(r"Bullpen \d\S+"), "Bullpen <version>"),
    (re.compile(r"127\.0\.0\.1:\d+"), "<address>"),
    (re.compile(r"#code=\S+"), "#code=<code>"),
)


def plain(screen: str) -> str:
    """A screen without what differs each time, and without empty lines at its end."""
    text = "\n".join(line.rstrip() for line in screen.splitlines()).strip("\n")
    for pattern, word in VARIABLE:
        text = pattern.sub(word, text)
    return text


class Person:
    """Somebody in a window who types a line and sees a screen."""

    def __init__(self, window: Tmux) -> None:
        self.window = window

    async def sees_with_hint(self, *lines: str) -> None:
        """The window shows exactly these lines, and in its last row how to detach."""

        def shows(screen: str) -> bool:
            above, _, last = screen.rstrip("\n").rpartition("\n")
            return HINT in last and plain(above) == "\n".join(lines)

        await self.window.until(shows)

    async def sees(self, *lines: str) -> None:
        """The whole window shows exactly these lines."""
        expected = "\n".join(lines)
        try:
            await self.window.until(lambda screen: plain(screen) == expected)
        except AssertionError:
            assert plain(self.window.screen()) == expected

    async def types(self, line: str) -> None:
        await self.window.enter(line)

    async def clears(self, prompt: str = PROMPT) -> None:
        await self.window.type("C-l")
        await self.sees(prompt)

    async def runs(self, command: str, *answer: str) -> None:
        """A command in the shell of this window, and all it says."""
        await self.clears()
        await self.types(command)
        await self.sees(f"{PROMPT} {command}", *answer, PROMPT)


class Home(NamedTuple):
    """A new account, and the terminal windows its owner opens."""

    place: Path
    env: dict[str, str]

    @asynccontextmanager
    async def person(self, name: str, rows: int = 16) -> AsyncIterator[Person]:
        async with Tmux.open(self.place / name, self.env, cols=80, rows=rows) as window:
            yield Person(window)


@pytest.fixture
async def home(tmp_path: Path) -> AsyncIterator[Home]:
    place = tmp_path / "person"
    place.mkdir()
    (place / ".bashrc").write_text(f"PS1='{INSIDE} '\n")
    env = {
        "HOME": str(place),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "TERM": "xterm-256color",
        "LANG": "C.UTF-8",
        "SHELL": "/bin/bash",
        "BULLPEN_PORT": str(free_port()),
        "PROJECT": str(PROJECT),
        "SSH_CONNECTION": "so that no browser is opened",
    }
    yield Home(place, env)
    end_processes_of(place / ".local" / "share" / "bullpen")


async def test_the_first_minute(home: Home) -> None:
    async with home.person("first", rows=40) as operator, home.person("second") as person:
        await operator.types('make -C "$PROJECT" setup && echo "all set"')
        await operator.window.until(lambda screen: "\nall set\n" in plain(screen))
        await operator.clears()
        await person.runs(
            "bullpen",
            "Bullpen <version> runs coding agents and never loses a session.",
            "",
            "Bullpen is not running here; start it with: bullpen serve",
            "Then open a terminal:  bullpen new",
            "Everything else:       bullpen --help",
        )
        await operator.types("bullpen serve")
        shown = plain(await operator.window.until("ready"))
        assert shown.splitlines()[:2] == [
            f"{PROMPT} bullpen serve",
            "Bullpen <version> is at http://<address>/#code=<code>",
        ]

        await person.clears()
        await person.types("bullpen new --name first")
        await person.sees_with_hint(INSIDE)
        await person.types("echo $((20 + 22))")
        await person.sees(f"{INSIDE} echo $((20 + 22))", "42", INSIDE)
        await person.window.type("C-]")
        goodbye = "[detached from first/terminal; come back with: bullpen attach <id>]"
        await person.window.until(lambda screen: plain(screen).endswith(f"{goodbye}\n{PROMPT}"))

        await person.runs(
            "bullpen ls",
            "   TITLE  ID        STATE  WORKERS   DIRECTORY                   AGE",
            "○  first  <id>  idle   terminal  ~/bullpen/session-<id>  <age>",
        )
        await person.clears()
        await person.types("bullpen logs first/terminal")
        await person.sees(
            f"{PROMPT} bullpen logs first/terminal",
            f"{INSIDE} echo $((20 + 22))",
            "42",
            f"{INSIDE} {PROMPT}",
        )
        await person.clears()
        await person.types("bullpen attach first")
        await person.sees_with_hint(f"{INSIDE} echo $((20 + 22))", "42", INSIDE)
        await person.window.type("C-]")
        await person.window.until(lambda screen: plain(screen).endswith(f"{goodbye}\n{PROMPT}"))

        await person.runs("bullpen stop first", "stopped first")
        await person.runs("bullpen ls", "no sessions; start one with: bullpen new")
        await person.runs(
            "bullpen ls --all",
            "   TITLE  ID        STATE      WORKERS  DIRECTORY                   AGE",
            "○  first  <id>  completed  none     ~/bullpen/session-<id>  <age>",
        )
        await operator.window.type("C-c")
        await operator.window.until(lambda screen: screen.rstrip().endswith(PROMPT))
        await person.runs("bullpen ls", "bullpen: Bullpen is not running here; start it with: bullpen serve")
