"""A screen that tests can look at: everything it shows, and whether it could be saved."""

from bullpen.workers.ghostty import Cursor
from bullpen.workers.screen import Screen


class ShownScreen(Screen):
    def text(self) -> str:
        return self.view(0).text

    def contents(self) -> str:
        """What is shown and the scrollback above it."""
        with self._in_use() as emulation:
            return emulation.terminal.contents()

    @property
    def cursor(self) -> Cursor:
        with self._in_use() as emulation:
            return emulation.terminal.cursor

    def mode(self, number: int) -> bool:
        with self._in_use() as emulation:
            return emulation.terminal.mode(number)

    def save(self) -> bool:
        """Whether the screen is in a file now; it cannot be inside of a sequence of many megabytes."""
        with self._in_use() as emulation:
            return self._save(emulation)
