"""Simulate a user at a terminal with tmux: type keys and read the screen."""

import asyncio
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

PROMPT = "outer>"
DEADLINE = 60.0


class Tmux:
    """A separate tmux server with one window, in which a plain shell runs."""

    def __init__(self, socket: Path) -> None:
        self._socket = socket

    @classmethod
    @asynccontextmanager
    async def open(
        cls, socket: Path, env: dict[str, str], cols: int = 100, rows: int = 30
    ) -> AsyncIterator["Tmux"]:
        tmux = cls(socket)
        shell = ["env", f"PS1={PROMPT} ", "bash", "--norc", "--noprofile"]
        size = ["-x", str(cols), "-y", str(rows)]
        tmux._run("new-session", "-d", "-c", str(socket.parent), *size, *shell, env=env)
        try:
            await tmux.until(PROMPT)
            yield tmux
        finally:
            tmux._run("kill-server")

    async def type(self, *keys: str) -> None:
        """Type texts or named keys."""
        self._run("send-keys", *keys)

    async def enter(self, line: str) -> None:
        self._run("send-keys", "-l", line)
        self._run("send-keys", "Enter")

    def resize(self, cols: int, rows: int) -> None:
        self._run("resize-window", "-x", str(cols), "-y", str(rows))

    def screen(self, *options: str) -> str:
        return self._run("capture-pane", "-p", *options)

    def title(self) -> str:
        """Return the title of the window, which programs can set."""
        return self._run("display-message", "-p", "#{pane_title}").strip()

    async def until(self, expected: str | Callable[[str], bool], *options: str) -> str:
        """Wait until the screen contains a text or satisfies a condition; return the screen."""
        is_shown = (lambda screen: expected in screen) if isinstance(expected, str) else expected
        try:
            async with asyncio.timeout(DEADLINE):
                while not is_shown(screen := self.screen(*options)):
                    await asyncio.sleep(0.05)
        except TimeoutError:
            raise AssertionError(f"not on the screen: {expected}\n{self.screen()}") from None
        return screen

    def _run(self, *command: str, env: dict[str, str] | None = None) -> str:
        done = subprocess.run(
            ["tmux", "-S", str(self._socket), "-f", "/dev/null", *command],
            env=env,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout
