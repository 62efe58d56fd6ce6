"""Print tables that fit the width of the terminal; in a pipe, columns are not shortened."""

import shutil
import sys
from collections.abc import Callable, Sequence
from typing import NamedTuple

from .text import fit, fit_path, paint, printable, width

_GAP = "  "


class TableCell(NamedTuple):
    """A text and the colour in which to print it."""

    text: str
    colour: str | None = None


class TableColumn(NamedTuple):
    """A column: its title, and the width in characters down to which it may shrink (None: never).

    `fit` shortens a text to a number of characters.
    """

    title: str
    least: int | None = None
    fit: Callable[[str, int], str] = fit


def path_column(title: str, least: int) -> TableColumn:
    """Return a column of paths, which are shortened in the middle."""
    return TableColumn(title, least, fit_path)


def print_table(columns: Sequence[TableColumn], rows: Sequence[Sequence[TableCell | str]]) -> None:
    """Print a table, shortened to the width of the terminal if standard output is one."""
    room = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    for line in lay_out(columns, rows, room):
        print(line)


def lay_out(
    columns: Sequence[TableColumn], rows: Sequence[Sequence[TableCell | str]], room: int | None
) -> list[str]:
    """Return the lines of a table, first the titles if there are any.

    Columns shrink until a line fits into `room` characters, or until none can shrink further; None: they do
    not shrink.
    """
    cells = [[_cell(each) for each in row] for row in rows]
    widths = _widths(columns, cells, room)
    head = [TableCell(column.title, "bold") for column in columns]
    return [
        _line(columns, row, widths)
        for row in ([head] if any(column.title for column in columns) else []) + cells
    ]


def _cell(value: TableCell | str) -> TableCell:
    """Return a value as a cell without control characters."""
    cell = value if isinstance(value, TableCell) else TableCell(value)
    return TableCell(printable(cell.text), cell.colour)


def _widths(
    columns: Sequence[TableColumn], rows: Sequence[Sequence[TableCell]], room: int | None
) -> list[int]:
    """Return the width of each column."""
    widths = [
        max([width(column.title), *(width(row[index].text) for row in rows)])
        for index, column in enumerate(columns)
    ]
    if room is None:
        return widths
    excess = sum(widths) + len(_GAP) * (len(columns) - 1) - room
    while excess > 0:
        index = _widest_shrinkable(columns, widths)
        if index is None:
            break
        widths[index] -= 1
        excess -= 1
    return widths


def _widest_shrinkable(columns: Sequence[TableColumn], widths: list[int]) -> int | None:
    """Return the index of the widest column that can shrink further, or None."""
    shrinkable = [
        i for i, column in enumerate(columns) if column.least is not None and widths[i] > column.least
    ]
    return max(shrinkable, key=lambda index: widths[index], default=None)


def _line(columns: Sequence[TableColumn], row: Sequence[TableCell], widths: list[int]) -> str:
    """Return a row as a line with padded cells."""
    texts = [column.fit(cell.text, room) for column, cell, room in zip(columns, row, widths, strict=True)]
    padded = [
        paint(text, cell.colour) + " " * (room - width(text))
        for text, cell, room in zip(texts, row, widths, strict=True)
    ]
    return _GAP.join(padded).rstrip()
