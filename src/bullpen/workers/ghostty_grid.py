"""Read single rows and cells of an emulated terminal, which the formatter of the library does not report.

Rows count from the top of the scrollback. A Grid is valid until the terminal is fed or resized.
"""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from .ghostty_library import Library, check

BLANK = 0  # a cell that was not written to since it was cleared


class Row(NamedTuple):
    """The flags of one row."""

    wraps: bool  # continues in the next row without a line end
    has_links: bool


class Span(NamedTuple):
    """Neighbouring cells, `end` exclusive, with the same link or the same background."""

    start: int
    end: int
    value: bytes


class Grid:
    """The rows and cells of one terminal."""

    def __init__(self, library: Library, terminal: Any, cols: int) -> None:
        self._library, self._ffi, self._lib = library, library.ffi, library.lib
        self._terminal = terminal
        self._cols = cols
        self._cell_out = self._ffi.new("GhosttyCell*")
        # By the whole value of a cell: a screen has many cells but few different values.
        self._has_link: dict[int, bool] = {}
        self._colors: dict[int, bytes] = {BLANK: b""}

    def row(self, y: int) -> Row:
        """Return whether row `y` continues in the next one, and whether it has links."""
        raw, flag = self._ffi.new("GhosttyRow*"), self._ffi.new("bool*")
        check(self._lib.ghostty_grid_ref_row(self.ref(0, y), raw), "row")
        flags = []
        for data in (self._lib.GHOSTTY_ROW_DATA_WRAP, self._lib.GHOSTTY_ROW_DATA_HYPERLINK):
            check(self._lib.ghostty_row_get(raw[0], data, flag), "row flag")
            flags.append(bool(flag[0]))
        return Row(*flags)

    def is_filled_to_the_edge(self, y: int) -> bool:
        """Return whether a character printed behind the text of this row would begin the next row."""
        edge = self._cols - 1
        if self._wide(edge, y) == self._lib.GHOSTTY_CELL_WIDE_SPACER_HEAD:
            edge -= 1  # a wide character did not fit there
        return bool(self._value(self._cell(self.ref(edge, y)), "HAS_TEXT", "bool")) or self.is_second_half(
            edge, y
        )

    def is_second_half(self, x: int, y: int) -> bool:
        """Return whether a cell belongs to the wide character on its left."""
        return bool(self._wide(x, y) == self._lib.GHOSTTY_CELL_WIDE_SPACER_TAIL)

    def _wide(self, x: int, y: int) -> Any:
        """Return the role of a cell in a wide character."""
        return self._value(self._cell(self.ref(x, y)), "WIDE", "GhosttyCellWide")

    def links(self, y: int) -> list[Span]:
        """Return the hyperlinks of a row, each with its URI."""
        return _spans(self._link(ref) for ref in self._refs(y))

    def backgrounds(self, y: int) -> list[Span]:
        """Return the coloured spans without text of a row, each with its SGR parameters."""
        return _spans(self._background(ref) for ref in self._refs(y))

    def written(self, y: int) -> list[Span]:
        """Return the spans of a row that are not blank."""
        return _spans(b"" if self._cell(ref) == BLANK else b"written" for ref in self._refs(y))

    def link(self, x: int, y: int) -> bytes:
        """Return the URI of one cell, or nothing."""
        return self._link(self.ref(x, y))

    def has_coloured_end(self, y: int) -> bool:
        """Return whether the first or last cell of a row without text has a background."""
        return any(self._background(self.ref(x, y)) for x in (0, self._cols - 1))

    def ref(self, x: int, y: int, tag: str = "SCREEN") -> Any:
        """Return the library's reference to a cell; with ACTIVE, rows count from the top of the screen."""
        point = self._ffi.new("GhosttyPointS*")
        point.tag = getattr(self._lib, f"GHOSTTY_POINT_TAG_{tag}")
        point.value.x, point.value.y = x, y
        ref = self._library.new_sized("GhosttyGridRef")
        check(self._library.grid_ref(self._terminal, point[0], ref), f"cell {x},{y}")
        return ref

    def selection(self, start: tuple[int, int], end: tuple[int, int], tag: str = "SCREEN") -> Any:
        """Return the library's selection from one cell to another, both included."""
        selection = self._library.new_sized("GhosttySelection")
        selection.start = self.ref(*start, tag)[0]
        selection.end = self.ref(*end, tag)[0]
        return selection

    def _refs(self, y: int) -> Iterator[Any]:
        """Yield a reference to each cell of a row."""
        ref = self.ref(0, y)
        for x in range(self._cols):
            ref.x = x
            yield ref

    def _link(self, ref: Any) -> bytes:
        """Return the address of the link in a cell; empty if it has none."""
        cell = self._cell(ref)
        if cell not in self._has_link:
            self._has_link[cell] = bool(self._value(cell, "HAS_HYPERLINK", "bool"))
        return self._uri(ref) if self._has_link[cell] else b""

    def _uri(self, ref: Any) -> bytes:
        """Return the URI of a cell that has a link."""
        length = self._ffi.new("size_t*")
        self._lib.ghostty_grid_ref_hyperlink_uri(ref, self._ffi.NULL, 0, length)
        uri = self._ffi.new("uint8_t[]", max(length[0], 1))
        check(self._lib.ghostty_grid_ref_hyperlink_uri(ref, uri, len(uri), length), "link")
        return bytes(self._ffi.buffer(uri, length[0]))

    def _background(self, ref: Any) -> bytes:
        """Return the SGR parameters of the background of a cell without text, or nothing."""
        cell = self._cell(ref)
        if cell not in self._colors:
            self._colors[cell] = self._color(cell)
        return self._colors[cell]

    def _color(self, cell: int) -> bytes:
        """Return the background colour of an empty cell as SGR parameters; empty for the default."""
        tag = self._value(cell, "CONTENT_TAG", "GhosttyCellContentTag")
        if tag == self._lib.GHOSTTY_CELL_CONTENT_BG_COLOR_PALETTE:
            return b"48;5;%d" % self._value(cell, "COLOR_PALETTE", "GhosttyColorPaletteIndex")
        if tag == self._lib.GHOSTTY_CELL_CONTENT_BG_COLOR_RGB:
            rgb = self._value(cell, "COLOR_RGB", "GhosttyColorRgb")
            return b"48;2;%d;%d;%d" % (rgb.r, rgb.g, rgb.b)
        return b""

    def _cell(self, ref: Any) -> int:
        """Return the packed value of a cell."""
        check(self._lib.ghostty_grid_ref_cell(ref, self._cell_out), "cell")
        return int(self._cell_out[0])

    def _value(self, cell: int, name: str, ctype: str) -> Any:
        """Return one property of a packed cell value."""
        out = self._ffi.new(f"{ctype}*")
        check(self._lib.ghostty_cell_get(cell, getattr(self._lib, f"GHOSTTY_CELL_DATA_{name}"), out), name)
        return out[0]


def _spans(values: Iterable[bytes]) -> list[Span]:
    """Join equal neighbours into spans; cells with an empty value belong to none."""
    spans: list[Span] = []
    for x, value in enumerate(values):
        if spans and spans[-1].end == x and spans[-1].value == value:
            spans[-1] = spans[-1]._replace(end=x + 1)
        elif value:
            spans.append(Span(x, x + 1, value))
    return spans
