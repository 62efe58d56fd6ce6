"""A screen whose text, cursor and modes tests can read."""

from bullpen.workers.ghostty import Cursor
from bullpen.workers.screen import Screen


class InspectableScreen(Screen):
    def text(self) -> str:
        return self.view(0).text

    def contents(self) -> str:
        """Return the visible text and the scrollback above it."""
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
        """Save the screen; return False inside a sequence of many megabytes, where it cannot be saved."""
        with self._in_use() as emulation:
            return self._save(emulation)
