"""A person at a terminal, played by tmux: keys go in, the screen can be read."""

import asyncio
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

PROMPT = "outer>"
DEADLINE = 60.0


class Tmux:
    """One window with a plain shell in it, in a tmux server of its own."""

    def __init__(self, place: Path) -> None:
        self._place = place

    @classmethod
    @asynccontextmanager
    async def open(
        cls, place: Path, env: dict[str, str], cols: int = 100, rows: int = 30
    ) -> AsyncIterator["Tmux"]:
        tmux = cls(place)
        shell = ["env", f"PS1={PROMPT} ", "bash", "--norc", "--noprofile"]
        size = ["-x", str(cols), "-y", str(rows)]
        tmux._run("new-session", "-d", "-c", str(place.parent), *size, *shell, env=env)
        try:
            await tmux.until(PROMPT)
            yield tmux
        finally:
            tmux._run("kill-server")

    async def type(self, *keys: str) -> None:
        """Text or names of keys, one after the other."""
        self._run("send-keys", *keys)

    async def enter(self, line: str) -> None:
        self._run("send-keys", "-l", line)
        self._run("send-keys", "Enter")

    def resize(self, cols: int, rows: int) -> None:
        self._run("resize-window", "-x", str(cols), "-y", str(rows))

    def screen(self, *options: str) -> str:
        return self._run("capture-pane", "-p", *options)

    async def until(self, what: str | Callable[[str], bool], *options: str) -> str:
        """The screen, as soon as it shows something."""
        shows = (lambda screen: what in screen) if isinstance(what, str) else what
        try:
            async with asyncio.timeout(DEADLINE):
                while not shows(screen := self.screen(*options)):
                    await asyncio.sleep(0.05)
        except TimeoutError:
            raise AssertionError(f"not seen: {what}\n{self.screen()}") from None
        return screen

    def _run(self, *command: str, env: dict[str, str] | None = None) -> str:
        done = subprocess.run(
            ["tmux", "-S", str(self._place), "-f", "/dev/null", *command],
            env=env,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout
