"""Decide the window size of a terminal: it is that of the viewer who used the terminal last."""

from collections.abc import Callable
from typing import NamedTuple


class WindowSize(NamedTuple):
    """The size of a terminal in character cells."""

    cols: int
    rows: int


class TerminalWindow:
    """The viewers of one terminal, the size that each can show, and the owner whose size is in force."""

    def __init__(self, size: WindowSize) -> None:
        self.size = size
        self.owner: str | None = None
        self._requested_sizes: dict[str, WindowSize] = {}
        self._watchers: dict[str, Callable[[], None]] = {}

    @property
    def viewers(self) -> int:
        """The number of viewers."""
        return len(self._watchers)

    def add_viewer(self, viewer: str, changed: Callable[[], None]) -> None:
        """Add a viewer, and call `changed` each time the size or its owner changes."""
        self._watchers[viewer] = changed

    def remove_viewer(self, viewer: str) -> None:
        """Remove a viewer. The size stays until another viewer uses the terminal."""
        self._watchers.pop(viewer, None)
        self._requested_sizes.pop(viewer, None)
        if self.owner == viewer:
            self.owner = None

    def request_size(self, viewer: str, size: WindowSize, *, take: bool = False) -> WindowSize | None:
        """Note the size that a viewer can show; return the size to set, if any.

        It is set if the viewer owns the window, no viewer does, or `take` makes this one the owner.
        """
        self._requested_sizes[viewer] = size
        if self.owner is None or (take and self.owner != viewer):
            self._set_owner(viewer)
        return self._apply_size() if self.owner == viewer else None

    def take_by_input(self, viewer: str) -> WindowSize | None:
        """Make a viewer who types the owner, if its size is known; return the size to set, if any."""
        if self.owner == viewer or viewer not in self._requested_sizes:
            return None
        self._set_owner(viewer)
        return self._apply_size()

    def _set_owner(self, viewer: str) -> None:
        """Make a viewer the owner, and notify all viewers."""
        self.owner = viewer
        self._notify()

    def _apply_size(self) -> WindowSize | None:
        """Set the size that the owner has requested. Return it if the size changed, else None."""
        size = self._requested_sizes[self.owner] if self.owner else self.size
        if size == self.size:
            return None
        self.size = size
        self._notify()
        return size

    def _notify(self) -> None:
        """Tell all viewers that the size or its owner has changed."""
        for changed in self._watchers.values():
            changed()
