"""Real programs on a real pty: a viewer that attaches at any time shows the same as the server's screen."""

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
TIMEOUT_SECONDS = 60
KEY_MODES = (1, 6, 7, 25, 66, 1000, 1002, 1003, 1005, 1006, 1015, 1049, 2004)


class PtyProgram:
    """A program on a pty, all its output, and the screen that answers its queries."""

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

    def wait_until(self, reached: Callable[[InspectableScreen], bool]) -> InspectableScreen:
        """Read output and answer queries until `reached` is true of the screen."""
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while not reached(self.screen):
            readable, _, _ = select.select([self._master], [], [], deadline - time.monotonic())
            assert readable, f"timeout; the screen shows:\n{self.screen.text()}"
            try:
                self.data += os.read(self._master, 65536)
            except OSError:  # the program has closed the pty
                assert reached(self.screen), self.screen.text()
            for reply in self.screen.advance(self.end):
                os.write(self._master, reply.data)
        return self.screen

    def wait_for_text(self, text: str) -> InspectableScreen:
        return self.wait_until(lambda screen: text in screen.text())


class AttachedViewer:
    """A viewer that is attached at its construction."""

    def __init__(self, program: PtyProgram) -> None:
        self._program = program
        history = program.screen.history()
        self.terminal = EmulatedTerminal(history.cols, history.rows)
        assert self.terminal.feed(history.data) == [], "the history made the viewer type a reply"
        self._offset = history.offset
        self.compare()

    def compare(self) -> None:
        """Feed the viewer the output since the last call, and compare it with the server's screen."""
        self.terminal.feed(self._program.data[self._offset :])
        self._offset = self._program.end
        original = EmulatedTerminal(COLS, ROWS)
        original.feed(self._program.data)
        assert self.terminal.contents() == self._program.screen.contents()
        assert observable_state(self.terminal) == observable_state(original)


def observable_state(terminal: EmulatedTerminal) -> dict[str, Any]:
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


def test_a_viewer_shows_vim_like_the_server(tmp_path: Path, lines: Path) -> None:
    setup = ["-c", "set number hlsearch mouse=a title", "-c", "syntax on"]
    with PtyProgram(["vim", "-u", "NONE", "-N", *setup, str(lines)], tmp_path) as vim:
        screen = vim.wait_for_text("function_5")
        assert screen.mode(1049)
        opened = AttachedViewer(vim)
        vim.type(b"/function_200\r")
        vim.wait_for_text("function_204")
        opened.compare()
        vim.type(b":split\r\x17j\x16jjlld")  # a window above, a block selected and deleted
        vim.wait_until(lambda screen: screen.text().count("lines.py") >= 2)
        searched = AttachedViewer(vim)
        vim.type(b":qall!\r")
        vim.wait_until(lambda screen: not screen.mode(1049))
        opened.compare()
        searched.compare()


def test_a_viewer_shows_less_like_the_server(tmp_path: Path, lines: Path) -> None:
    with PtyProgram(["less", "-N", "-S", str(lines)], tmp_path) as less:
        less.wait_for_text("lines.py")
        opened = AttachedViewer(less)
        less.type(b" ")
        less.wait_for_text("function_40")
        scrolled = AttachedViewer(less)
        less.type(b"/function_250\r")
        less.wait_for_text("function_260")
        opened.compare()
        less.type(b"q")
        less.wait_until(lambda screen: not screen.mode(1049))
        opened.compare()
        scrolled.compare()


def test_a_viewer_shows_htop_like_the_server(tmp_path: Path) -> None:
    with PtyProgram(["htop", "--delay=2"], tmp_path) as htop:
        screen = htop.wait_for_text("F10")
        assert screen.mode(1049)
        assert screen.mode(1006)
        opened = AttachedViewer(htop)
        drawn = htop.end
        htop.wait_until(lambda _screen: htop.end > drawn + 2000)  # it redraws periodically
        opened.compare()
        htop.type(b"\x1bOS")  # F4, a filter
        htop.wait_for_text("Filter:")
        filtering = AttachedViewer(htop)
        htop.type(b"\x1b")
        htop.wait_until(lambda screen: "Filter:" not in screen.text())
        htop.type(b"q")
        htop.wait_until(lambda screen: not screen.mode(1049))
        opened.compare()
        filtering.compare()


def test_a_viewer_can_attach_in_the_middle_of_a_sequence(tmp_path: Path) -> None:
    with PtyProgram(["bash", "--norc", "--noprofile"], tmp_path) as shell:
        halves = rb"printf '\033[3'; read -s; printf '1mred\033[0m \303'; read -s; printf '\251\n'"
        shell.type(b"PS1='> '; stty -echo; seq 100; " + halves + b"\r")
        shell.wait_until(lambda _screen: shell.data.endswith(b"\x1b[3"))
        in_a_colour = AttachedViewer(shell)
        shell.type(b"\r")
        shell.wait_until(lambda _screen: shell.data.endswith(b"\xc3"))
        in_a_letter = AttachedViewer(shell)
        in_a_colour.compare()
        shell.type(b"\r")
        shell.wait_for_text("red é\n>")
        in_a_colour.compare()
        in_a_letter.compare()


def test_attaching_types_nothing_into_a_shell_that_sent_a_query(tmp_path: Path) -> None:
    """Three viewers attach with a query in the history, then the shell sends another query."""
    ask = b"IFS= read -rs -d R -p $'\\033[6n' answer; printf '%q\\n' \"$answer\"\r"
    with PtyProgram(["bash", "--norc", "--noprofile"], tmp_path) as shell:
        shell.type(b"PS1='> '; stty -echo\r" + ask)
        shell.wait_until(lambda screen: screen.text().count("$'\\E[") == 1)
        for _ in range(3):
            AttachedViewer(shell)
        shell.type(ask)
        shell.wait_until(lambda screen: screen.text().count("$'\\E[") == 2)
        shell.type(b"echo the end\r")
        shell.wait_until(lambda screen: screen.text().endswith("the end\n>"))
        assert shell.screen.text().count("$'\\E[") == 2
