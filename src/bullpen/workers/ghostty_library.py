"""Load the Ghostty library, and handle its callbacks for replies, size and colour scheme.

Loading takes a third of a second, so `Screens.warm_up` does it in the background when the server is ready.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

CELL_WIDTH, CELL_HEIGHT = 8, 16  # pixels, reported to programs that query it


class GhosttyError(Exception):
    """A call of the Ghostty library failed."""


def check(result: int, what: str) -> None:
    """Raise GhosttyError if a call has returned an error; `what` names the call in the message."""
    if result:
        raise GhosttyError(f"{what}: error {result} of the Ghostty library")


class Library:
    """The functions of the library, and the callbacks that must live as long as it does."""

    def __init__(self) -> None:
        from pyghostty import ffi, lib  # noqa: PLC0415 (loading is slow, see the module docstring)
        from pyghostty.core import init_sized, union_fn  # noqa: PLC0415

        self.ffi: Any = ffi
        self.lib: Any = lib
        self.new_sized: Callable[[str], Any] = init_sized
        self.grid_ref: Callable[[Any, Any, Any], int] = union_fn(
            "ghostty_terminal_grid_ref", "GhosttyResult(*)(GhosttyTerminal, GhosttyPointS, GhosttyGridRef*)"
        )
        self.callbacks = {
            "WRITE_PTY": ffi.callback("GhosttyTerminalWritePtyFn", self._on_reply),
            "SIZE": ffi.callback("GhosttyTerminalSizeFn", self._on_size),
            "COLOR_SCHEME": ffi.callback("GhosttyTerminalColorSchemeFn", self._on_color_scheme),
        }

    def take_bytes(self, pointer: Any, length: Any) -> bytes:
        """Copy bytes that the library has allocated, and free them."""
        taken = bytes(self.ffi.buffer(pointer[0], length[0])) if length[0] else b""
        self.lib.ghostty_free(self.ffi.NULL, pointer[0], length[0])
        return taken

    def _on_reply(self, _terminal: Any, userdata: Any, data: Any, length: int) -> None:
        """Append a reply to the list of its terminal."""
        replies: list[bytes] = self.ffi.from_handle(userdata)
        replies.append(bytes(self.ffi.buffer(data, length)))

    def _on_size(self, terminal: Any, _userdata: Any, out: Any) -> bool:
        """Report the size of a terminal in cells and pixels."""
        for name in ("COLS", "ROWS"):
            value = self.ffi.new("uint16_t*")
            data = getattr(self.lib, f"GHOSTTY_TERMINAL_DATA_{name}")
            check(self.lib.ghostty_terminal_get(terminal, data, value), name)
            setattr(out, "columns" if name == "COLS" else "rows", value[0])
        out.cell_width, out.cell_height = CELL_WIDTH, CELL_HEIGHT
        return True

    def _on_color_scheme(self, _terminal: Any, _userdata: Any, out: Any) -> bool:
        """Report a dark colour scheme."""
        out[0] = self.lib.GHOSTTY_COLOR_SCHEME_DARK
        return True


@cache
def load() -> Library:
    """Return the library, loaded at the first call."""
    return Library()
