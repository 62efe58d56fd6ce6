"""Wrap Ghostty's terminal emulator: feed it bytes, read its screen, encode and decode its whole state.

Only one thread at a time may use a terminal; different terminals are independent.
"""

import weakref
from collections.abc import Iterator
from typing import Any, NamedTuple, Self

from .ghostty_grid import Grid
from .ghostty_library import CELL_HEIGHT, CELL_WIDTH, GhosttyError, Library, check, load

__all__ = ["Cursor", "EmulatedTerminal", "GhosttyError"]

SCROLLBACK_MAX_BYTES = 2 << 20
CONTINUATION_MAX_BYTES = 4 << 20  # a terminal inside a longer unfinished sequence cannot be encoded
TERMINFO_NAME = b"xterm-256color"
# Only the emulator answers colour queries, whatever the themes of the viewers; it reports a dark theme.
FOREGROUND, BACKGROUND = (0xD8, 0xD8, 0xD8), (0x14, 0x14, 0x18)

SCREEN_EXTRAS = {"cursor", "style", "hyperlink", "protection", "kitty_keyboard", "charsets"}
EXTRAS_BEFORE_CONTENT = {"modes", "tabstops"}

Color = tuple[int, int, int]


class Cursor(NamedTuple):
    """The cursor of a terminal; `x` and `y` count from 0."""

    x: int
    y: int
    pending_wrap: bool  # the last column is written, the next character begins a new row
    visible: bool


class EmulatedTerminal:
    """One emulated terminal, as a native object of the Ghostty library."""

    def __init__(self, cols: int, rows: int) -> None:
        library = load()
        handle = library.ffi.new("GhosttyTerminal*")
        check(library.lib.ghostty_terminal_new(library.ffi.NULL, handle, cols, rows), f"{cols}x{rows}")
        self._adopt(library, handle[0])
        self._set("SCROLLBACK_MAX_BYTES", "size_t", SCROLLBACK_MAX_BYTES)
        self._set("SCROLLBACK_MAX_LINES", "size_t", SCROLLBACK_MAX_BYTES)  # only the bytes limit it
        self._set("CONTINUATION_MAX_BYTES", "size_t", CONTINUATION_MAX_BYTES)

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """Return a terminal with the state that `encode` returned."""
        library = load()
        ffi, lib = library.ffi, library.lib
        decoder, handle = ffi.new("GhosttySnapshotDecoder*"), ffi.new("GhosttyTerminal*")
        encoded = ffi.from_buffer("uint8_t[]", data)
        check(lib.ghostty_snapshot_decoder_new_buf(ffi.NULL, decoder, encoded, len(data)), "decoder")
        try:
            limit, retain = ffi.new("size_t*", CONTINUATION_MAX_BYTES), ffi.new("bool*", True)
            option = lib.GHOSTTY_SNAPSHOT_DECODER_OPT_MAX_CONTINUATION_BYTES
            check(lib.ghostty_snapshot_decoder_set(decoder[0], option, limit), "continuation limit")
            option = lib.GHOSTTY_SNAPSHOT_DECODER_OPT_RETAIN_CONTINUATION
            check(lib.ghostty_snapshot_decoder_set(decoder[0], option, retain), "continuation")
            check(lib.ghostty_snapshot_decoder_decode(decoder[0], handle), "decode")
        finally:
            lib.ghostty_snapshot_decoder_free(decoder[0])
        terminal = cls.__new__(cls)
        terminal._adopt(library, handle[0])
        return terminal

    def _adopt(self, library: Library, handle: Any) -> None:
        """Own a native terminal, and set the options that neither a new nor a decoded one has."""
        self._library, self._ffi, self._lib = library, library.ffi, library.lib
        self._handle = handle
        self._free = weakref.finalize(self, library.lib.ghostty_terminal_free, handle)
        self._free.atexit = False  # at the end of the process a thread may still be feeding it
        self._replies: list[bytes] = []
        self._userdata = self._ffi.new_handle(self._replies)
        self._set_pointer("USERDATA", self._userdata)
        for option, callback in library.callbacks.items():
            self._set_pointer(option, callback)
        # No viewer shows images, so programs must not detect that the emulator could.
        self._set("KITTY_IMAGE_STORAGE_LIMIT", "uint64_t", 0)
        name = self._ffi.from_buffer("uint8_t[]", TERMINFO_NAME)
        self._set("TERMINFO_NAME", "GhosttyString", {"ptr": name, "len": len(TERMINFO_NAME)})
        self._set("COLOR_FOREGROUND", "GhosttyColorRgb", FOREGROUND)
        self._set("COLOR_BACKGROUND", "GhosttyColorRgb", BACKGROUND)

    def close(self) -> None:
        """Free the native memory now; the terminal cannot be used afterwards."""
        self._free()

    # Input

    def feed(self, data: bytes) -> list[bytes]:
        """Feed output of a program; return the replies to its queries, one by one."""
        self._lib.ghostty_terminal_vt_write(self._handle, data, len(data))
        return self._take_replies()

    def resize(self, cols: int, rows: int) -> list[bytes]:
        """Resize the terminal; return the report of the size if the program has enabled it (mode 2048)."""
        result = self._lib.ghostty_terminal_resize(self._handle, cols, rows, CELL_WIDTH, CELL_HEIGHT)
        check(result, f"resize to {cols}x{rows}")
        return self._take_replies()

    def _take_replies(self) -> list[bytes]:
        """Return the replies that the library has written since the last call."""
        taken = self._replies[:]
        self._replies.clear()
        return taken

    # The whole state

    def encode(self) -> bytes:
        """Return the whole state. Raise GhosttyError in a sequence longer than CONTINUATION_MAX_BYTES."""
        return self._allocated(self._lib.ghostty_snapshot_encode_alloc, "encode")

    def clone(self) -> "EmulatedTerminal":
        """Return a copy with the same state."""
        return EmulatedTerminal.decode(self.encode())

    def continuation(self) -> bytes | None:
        """Return the bytes of an unfinished sequence, or None if it is longer than is kept."""
        try:
            return self._allocated(self._lib.ghostty_terminal_continuation_alloc, "continuation")
        except GhosttyError:
            return None

    # Parts of the state

    @property
    def cols(self) -> int:
        return int(self._get("COLS", "uint16_t"))

    @property
    def rows(self) -> int:
        return int(self._get("ROWS", "uint16_t"))

    @property
    def scrollback_rows(self) -> int:
        return int(self._get("SCROLLBACK_ROWS", "size_t"))

    @property
    def cursor(self) -> Cursor:
        """Return the position and the visibility of the cursor."""
        x, y = (int(self._get(name, "uint16_t")) for name in ("CURSOR_X", "CURSOR_Y"))
        wrap, visible = (bool(self._get(name, "bool")) for name in ("CURSOR_PENDING_WRAP", "CURSOR_VISIBLE"))
        return Cursor(x, y, wrap, visible)

    @property
    def is_alternate(self) -> bool:
        """Whether the alternate screen is active."""
        shown = self._get("ACTIVE_SCREEN", "GhosttyTerminalScreen")
        return bool(shown == self._lib.GHOSTTY_TERMINAL_SCREEN_ALTERNATE)

    @property
    def is_ground(self) -> bool:
        """Whether the parser is outside of any escape sequence."""
        return bool(self._get("VT_GROUND", "bool"))

    @property
    def kitty_keyboard_flags(self) -> int:
        return int(self._get("KITTY_KEYBOARD_FLAGS", "uint8_t"))

    @property
    def title(self) -> bytes:
        """The window title that the program has set."""
        text = self._get("TITLE", "GhosttyString")
        return bytes(self._ffi.buffer(text.ptr, text.len)) if text.len else b""

    def mode(self, number: int, *, ansi: bool = False) -> bool:
        """Return whether a DEC private mode is set, or an ANSI mode."""
        config = self._ffi.new("GhosttyTerminalModeConfig*")
        config.mode = number & 0x7FFF | ansi << 15
        data = self._lib.GHOSTTY_TERMINAL_DATA_MODE
        check(self._lib.ghostty_terminal_get(self._handle, data, config), f"mode {number}")
        return bool(config.value)

    def color(self, name: str) -> Color | None:
        """Return the FOREGROUND, BACKGROUND or CURSOR colour; with _DEFAULT, the colour at the start."""
        rgb = self._ffi.new("GhosttyColorRgb*")
        data = getattr(self._lib, f"GHOSTTY_TERMINAL_DATA_COLOR_{name}")
        if self._lib.ghostty_terminal_get(self._handle, data, rgb):
            return None
        return int(rgb.r), int(rgb.g), int(rgb.b)

    def palette_changes(self) -> Iterator[tuple[int, Color]]:
        """Return index and colour of each palette entry that a program has changed."""
        now, before = self._palette("COLOR_PALETTE"), self._palette("COLOR_PALETTE_DEFAULT")
        return ((i, now[i]) for i in range(256) if now[i] != before[i])

    def _palette(self, name: str) -> list[Color]:
        """Return the 256 colours of a palette."""
        colors = self._ffi.new("GhosttyColorRgb[256]")
        data = getattr(self._lib, f"GHOSTTY_TERMINAL_DATA_{name}")
        check(self._lib.ghostty_terminal_get(self._handle, data, colors), name)
        return [(color.r, color.g, color.b) for color in colors]

    # Contents

    @property
    def grid(self) -> Grid:
        """Return the rows and cells; valid until the terminal is fed or resized."""
        return Grid(self._library, self._handle, self.cols)

    def text(self) -> str:
        """Return the text of the screen, row by row."""
        shown = self.grid.selection((0, 0), (self.cols - 1, self.rows - 1), "ACTIVE")
        return self._format(shown, plain=True).decode()

    def contents(self) -> str:
        """Return the text of the scrollback and the screen, row by row."""
        return self._format(self._ffi.NULL, plain=True).decode()

    def styled_rows(self) -> list[bytes]:
        """Return scrollback and screen with colours, one item per row; rows without text are empty."""
        rows = self._format(self._ffi.NULL).split(b"\r\n")
        return rows + [b""] * (self.scrollback_rows + self.rows - len(rows))

    def styled_cells(self, y: int, start: int, end: int) -> bytes:
        """Return some cells of a row with colours; `y` counts from the top of the scrollback."""
        return self._format(self.grid.selection((start, y), (end - 1, y)))

    def extras(self, *names: str) -> bytes:
        """Return the sequences that set the named state: modes, tabstops, style, charsets, …"""
        # The formatter always prints contents too: it gets a single cell, whose text is removed again.
        cell = self.grid.selection((0, 0), (0, 0), "ACTIVE")
        content, formatted = self._format(cell), self._format(cell, extras=names)
        if EXTRAS_BEFORE_CONTENT.issuperset(names):
            return formatted.removesuffix(content)
        return formatted.removeprefix(content)

    def _format(self, selection: Any, *, plain: bool = False, extras: tuple[str, ...] = ()) -> bytes:
        """Return contents as text or with escape sequences; NULL selects all of it."""
        ffi, lib = self._ffi, self._lib
        options = self._library.new_sized("GhosttyFormatterTerminalOptions")
        options.emit = lib.GHOSTTY_FORMATTER_FORMAT_PLAIN if plain else lib.GHOSTTY_FORMATTER_FORMAT_VT
        options.trim, options.selection = plain, selection
        for name in extras:
            setattr(options.extra.screen if name in SCREEN_EXTRAS else options.extra, name, True)
        formatter = ffi.new("GhosttyFormatter*")
        check(lib.ghostty_formatter_terminal_new(ffi.NULL, formatter, self._handle, options[0]), "formatter")
        try:
            pointer, length = ffi.new("uint8_t**"), ffi.new("size_t*")
            check(lib.ghostty_formatter_format_alloc(formatter[0], ffi.NULL, pointer, length), "format")
            return self._library.take_bytes(pointer, length)
        finally:
            lib.ghostty_formatter_free(formatter[0])

    # Calls of the library

    def _get(self, name: str, ctype: str) -> Any:
        """Return a value of the terminal by its name in the library."""
        out = self._ffi.new(f"{ctype}*")
        data = getattr(self._lib, f"GHOSTTY_TERMINAL_DATA_{name}")
        check(self._lib.ghostty_terminal_get(self._handle, data, out), name)
        return out[0]

    def _set(self, name: str, ctype: str, value: Any) -> None:
        """Set an option of the terminal, by its name in the library, to a value of a C type."""
        self._set_pointer(name, self._ffi.new(f"{ctype}*", value))

    def _set_pointer(self, name: str, pointer: Any) -> None:
        """Set an option of the terminal to the value at a pointer."""
        option = getattr(self._lib, f"GHOSTTY_TERMINAL_OPT_{name}")
        check(self._lib.ghostty_terminal_set(self._handle, option, pointer), name)

    def _allocated(self, call: Any, what: str) -> bytes:
        """Call a function that allocates bytes, and return these."""
        pointer, length = self._ffi.new("uint8_t**"), self._ffi.new("size_t*")
        check(call(self._handle, self._ffi.NULL, pointer, length), what)
        return self._library.take_bytes(pointer, length)
