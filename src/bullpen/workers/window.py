"""The size of a terminal's window: it belongs to the viewer who used the terminal last."""

from collections.abc import Callable
from typing import NamedTuple


class WindowSize(NamedTuple):
    cols: int
    rows: int


class TerminalWindow:
    """Who is looking, what each could show, and whose size is in force."""

    def __init__(self, size: WindowSize) -> None:
        self.size = size
        self.owner: str | None = None
        self._wishes: dict[str, WindowSize] = {}
        self._watchers: dict[str, Callable[[], None]] = {}

    @property
    def viewers(self) -> int:
        return len(self._watchers)

    def enter(self, viewer: str, changed: Callable[[], None]) -> None:
        """A viewer comes; `changed` is called whenever the size or its owner is another."""
        self._watchers[viewer] = changed

    def leave(self, viewer: str) -> None:
        """A viewer goes. The size stays until somebody uses the terminal."""
        self._watchers.pop(viewer, None)
        self._wishes.pop(viewer, None)
        if self.owner == viewer:
            self.owner = None

    def wish(self, viewer: str, size: WindowSize, *, take: bool = False) -> WindowSize | None:
        """A viewer's room changed: the new size to set, if it is that viewer's to say or it takes over."""
        self._wishes[viewer] = size
        if self.owner is None or (take and self.owner != viewer):
            self._own(viewer)
        return self._settle() if self.owner == viewer else None

    def use(self, viewer: str) -> WindowSize | None:
        """A viewer typed: the terminal takes its size, if it ever said one."""
        if self.owner == viewer or viewer not in self._wishes:
            return None
        self._own(viewer)
        return self._settle()

    def _own(self, viewer: str) -> None:
        self.owner = viewer
        self._tell()

    def _settle(self) -> WindowSize | None:
        size = self._wishes[self.owner] if self.owner else self.size
        if size == self.size:
            return None
        self.size = size
        self._tell()
        return size

    def _tell(self) -> None:
        for changed in self._watchers.values():
            changed()
