"""Real programs on a real pty: whoever attaches in the middle sees what was there and goes on the same."""

import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Self

import pytest

from bullpen.workers.ghostty import EmulatedTerminal
from support.inspectable_screen import InspectableScreen

COLS, ROWS = 80, 24
PATIENCE = 60  # seconds
KEY_MODES = (1, 6, 7, 25, 66, 1000, 1002, 1003, 1005, 1006, 1015, 1049, 2004)


class Program:
    """A program, everything it printed, and the screen that answers it."""

    def __init__(self, argv: list[str], directory: Path) -> None:
        self.data = b""
        self.start = 0
        self.screen = InspectableScreen(self, directory / "screens", COLS, ROWS)
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLS, 0, 0))
        self._process = subprocess.Popen(
            argv,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            cwd=directory,
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(directory),
                "TERM": "xterm-256color",
                "LC_ALL": "C.UTF-8",
            },
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509
        )
        os.close(slave)

    @property
    def end(self) -> int:
        return len(self.data)

    def read(self, offset: int, limit: int) -> bytes:
        return self.data[offset : offset + limit]

    def window_sizes(self, after: int) -> Iterator[tuple[int, int, int]]:
        yield from ()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._master)

    def type(self, keys: bytes) -> None:
        os.write(self._master, keys)

    def until(self, reached: Callable[[InspectableScreen], bool]) -> InspectableScreen:
        """Follows the program, answering what it asks."""
        deadline = time.monotonic() + PATIENCE
        while not reached(self.screen):
            readable, _, _ = select.select([self._master], [], [], deadline - time.monotonic())
            assert readable, f"still waiting, and this is all there is:\n{self.screen.text()}"
            try:
                self.data += os.read(self._master, 65536)
            except OSError:  # how a pty says that everybody has left
                assert reached(self.screen), self.screen.text()
            for reply in self.screen.advance(self.end):
                os.write(self._master, reply.data)
        return self.screen

    def until_shown(self, text: str) -> InspectableScreen:
        return self.until(lambda screen: text in screen.text())


class Viewer:
    """Somebody who attaches now."""

    def __init__(self, program: Program) -> None:
        self._program = program
        history = program.screen.history()
        self.terminal = EmulatedTerminal(history.cols, history.rows)
        assert self.terminal.feed(history.data) == [], "attaching types nothing"
        self._seen = history.offset
        self.compare()

    def compare(self) -> None:
        """Reads what came since and looks whether everything is as on the screen of the server."""
        self.terminal.feed(self._program.data[self._seen :])
        self._seen = self._program.end
        original = EmulatedTerminal(COLS, ROWS)
        original.feed(self._program.data)
        assert self.terminal.contents() == self._program.screen.contents()
        assert notice(self.terminal) == notice(original)


def notice(terminal: EmulatedTerminal) -> dict[str, Any]:
    return {
        "text": terminal.text(),
        "rows": terminal.styled_rows(),
        "cursor": terminal.cursor,
        "alternate": terminal.is_alternate,
        "modes": {mode for mode in KEY_MODES if terminal.mode(mode)},
        "region": terminal.extras("scrolling_region"),
        "pen": terminal.extras("style", "hyperlink"),
        "keyboard": (terminal.kitty_keyboard_flags, terminal.extras("keyboard")),
        "title": terminal.title,
    }


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    path = tmp_path / "lines.py"
    path.write_text(
        "".join(f"def function_{i}(): return 'été {i}'  # {'long ' * (i % 30)}\n" for i in range(300))
    )
    return path


def test_vim(tmp_path: Path, lines: Path) -> None:
    setup = ["-c", "set number hlsearch mouse=a title", "-c", "syntax on"]
    with Program(["vim", "-u", "NONE", "-N", *setup, str(lines)], tmp_path) as vim:
        screen = vim.until_shown("function_5")
        assert screen.mode(1049)
        opened = Viewer(vim)
        vim.type(b"/function_200\r")
        vim.until_shown("function_204")
        opened.compare()
        vim.type(b":split\r\x17j\x16jjlld")  # a window above, a block selected and deleted
        vim.until(lambda screen: screen.text().count("lines.py") >= 2)
        searched = Viewer(vim)
        vim.type(b":qall!\r")
        vim.until(lambda screen: not screen.mode(1049))
        opened.compare()
        searched.compare()


def test_less(tmp_path: Path, lines: Path) -> None:
    with Program(["less", "-N", "-S", str(lines)], tmp_path) as less:
        less.until_shown("lines.py")
        opened = Viewer(less)
        less.type(b" ")
        less.until_shown("function_40")
        scrolled = Viewer(less)
        less.type(b"/function_250\r")
        less.until_shown("function_260")
        opened.compare()
        less.type(b"q")
        less.until(lambda screen: not screen.mode(1049))
        opened.compare()
        scrolled.compare()


def test_htop(tmp_path: Path) -> None:
    with Program(["htop", "--delay=2"], tmp_path) as htop:
        screen = htop.until_shown("F10")
        assert screen.mode(1049)
        assert screen.mode(1006)
        opened = Viewer(htop)
        drawn = htop.end
        htop.until(lambda _screen: htop.end > drawn + 2000)  # it draws over and over
        opened.compare()
        htop.type(b"\x1bOS")  # F4, a filter
        htop.until_shown("Filter:")
        filtering = Viewer(htop)
        htop.type(b"\x1b")
        htop.until(lambda screen: "Filter:" not in screen.text())
        htop.type(b"q")
        htop.until(lambda screen: not screen.mode(1049))
        opened.compare()
        filtering.compare()


def test_a_shell_in_the_middle_of_a_sequence(tmp_path: Path) -> None:
    with Program(["bash", "--norc", "--noprofile"], tmp_path) as shell:
        halves = rb"printf '\033[3'; read -s; printf '1mred\033[0m \303'; read -s; printf '\251\n'"
        shell.type(b"PS1='> '; stty -echo; seq 100; " + halves + b"\r")
        shell.until(lambda _screen: shell.data.endswith(b"\x1b[3"))
        in_a_colour = Viewer(shell)
        shell.type(b"\r")
        shell.until(lambda _screen: shell.data.endswith(b"\xc3"))
        in_a_letter = Viewer(shell)
        in_a_colour.compare()
        shell.type(b"\r")
        shell.until_shown("red é\n>")
        in_a_colour.compare()
        in_a_letter.compare()


def test_attaching_types_nothing_into_a_shell_that_asked(tmp_path: Path) -> None:
    """S-13: questions in the history, three viewers, then one live question."""
    ask = b"IFS= read -rs -d R -p $'\\033[6n' answer; printf '%q\\n' \"$answer\"\r"
    with Program(["bash", "--norc", "--noprofile"], tmp_path) as shell:
        shell.type(b"PS1='> '; stty -echo\r" + ask)
        shell.until(lambda screen: screen.text().count("$'\\E[") == 1)
        for _ in range(3):
            Viewer(shell)
        shell.type(ask)
        shell.until(lambda screen: screen.text().count("$'\\E[") == 2)
        shell.type(b"echo the end\r")
        shell.until(lambda screen: screen.text().endswith("the end\n>"))
        assert shell.screen.text().count("$'\\E[") == 2
