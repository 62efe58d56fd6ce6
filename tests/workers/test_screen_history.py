"""A new terminal that is fed the history equals the original, also after further output."""

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bullpen.workers.ghostty import CONTINUATION_MAX_BYTES, EmulatedTerminal
from bullpen.workers.ghostty_grid import Span
from bullpen.workers.screen_emulation import ScreenEmulation
from bullpen.workers.screen_history import MAX_HISTORY_BYTES, render

MODES = (1, 5, 6, 7, 9, 25, 45, 66, 69, 1000, 1002, 1003, 1006, 1007, 2004, 2026)


def observable_state(terminal: EmulatedTerminal) -> dict[str, Any]:
    """Return all state that a user can see or a program can query."""
    rows = range(terminal.scrollback_rows + terminal.rows)
    return {
        "text": terminal.text(),
        "cells": [row_cells(terminal, y) for y in rows],
        "links": [terminal.grid.links(y) for y in rows],
        "cursor": terminal.cursor,
        "alternate": terminal.is_alternate,
        "modes": {mode for mode in MODES if terminal.mode(mode)},
        "insert": terminal.mode(4, ansi=True),
        "region": terminal.extras("scrolling_region"),
        "tabstops": terminal.extras("tabstops"),
        "pen": terminal.extras("style", "hyperlink", "protection"),
        "charsets": re.sub(rb"\x1b[()*+]B", b"", terminal.extras("charsets")),
        "keyboard": (terminal.kitty_keyboard_flags, terminal.extras("keyboard")),
        "shape": terminal.clone().feed(b"\x18\x1bP$q q\x1b\\"),
        "title": terminal.title,
        "colors": (terminal.color("BACKGROUND"), list(terminal.palette_changes())),
    }


def row_cells(terminal: EmulatedTerminal, y: int) -> list[bytes]:
    """Return each cell of a row. A blank cell and a space are equal: the difference is not visible."""
    cells = [terminal.styled_cells(y, x, x + 1) for x in range(terminal.cols)]
    for start, end, color in terminal.grid.backgrounds(y):
        cells[start:end] = [b"\x1b[0m\x1b[%sm \x1b[0m" % color] * (end - start)
    return [b"" if cell == b" " else cell for cell in cells]


def styled_row(terminal: EmulatedTerminal, y: int) -> tuple[bytes, list[Span]]:
    """Return what `row_cells` is made of, in a fraction of its time. Here a blank cell is no space."""
    return terminal.styled_cells(y, 0, terminal.cols), terminal.grid.backgrounds(y)


def attach_viewer(original: EmulatedTerminal) -> EmulatedTerminal:
    viewer = EmulatedTerminal(original.cols, original.rows)
    assert viewer.feed(render(original)) == []
    return viewer


def assert_same(original: EmulatedTerminal, viewer: EmulatedTerminal) -> None:
    assert observable_state(viewer) == observable_state(original)


def check(before: bytes, *after: bytes, cols: int = 20, rows: int = 5) -> EmulatedTerminal:
    """Compare a viewer that attaches after `before` with the original, now and after each further piece."""
    original = EmulatedTerminal(cols, rows)
    original.feed(before)
    viewer = attach_viewer(original)
    assert_same(original, viewer)
    for more in after:
        assert original.feed(more) == viewer.feed(more)
        assert_same(original, viewer)
    return viewer


LINES = b"\r\n".join(b"line %d" % i for i in range(12))
LEAVE = (b"\x1b[?1049l", b"back\r\n")


@pytest.mark.parametrize(
    "before",
    [
        b"",
        b"hello",
        LINES,
        LINES + b"\r\n\r\n\r\n",  # blank rows at the end of scrollback and screen
        b"\r\n" * 12,
        LINES + b"\x1b[2J\x1b[H",
        b"x" * 20,  # the wrap is pending
        "日本語".encode() * 3,
        b"ab\x1b[1;20H" + "日".encode() + b"x",  # a wide character that did not fit
        b"\x1b[44m\x1b[2J\x1b[3;3Hblue",
        b"\x1b[48;2;1;2;3m\x1b[K\r\n\x1b[0mtext",
        b"\x1b[3;5H\x1b[41m\x1b[4X\x1b[0m",
        b"\x1b[1;4:3;38;5;100mstyled",
        # blank cells between coloured ones, also in a row that continues the row above
        b"\x1b[4mone\x1b[3Ctwo\x1b[2;3H\x1b[44mthree\x1b[2Cfour\x1b[0m\x1b[2C\x1b[41m\x1b[3X",
        b"\x1b[7m" + b"x" * 26 + b"\x1b[2;1H\x1b[0m\x1b[2X\x1b[2;10H\x1b[7mend",
        b"\x1b[?1049h\x1b[?1h\x1b=\x1b[?2004h\x1b[?1002h\x1b[?1006h\x1b[?25lfull screen",
    ],
    ids=repr,
)
def test_a_viewer_shows_the_same_screen_as_the_original(before: bytes) -> None:
    check(before, b"!\r\n", b"\x1b[Hmore\x1b[K", b"\x1b[5;1H\r\nscrolls\r\n")


def test_the_scrollback_of_a_viewer_is_exact() -> None:
    original = EmulatedTerminal(20, 5)
    original.feed(b"".join(b"\x1b[3%dmrow %d\x1b[0m\r\n" % (i % 8, i) for i in range(1000)) + b"\r\n" * 7)
    viewer = attach_viewer(original)
    assert viewer.contents() == original.contents()
    assert viewer.scrollback_rows == original.scrollback_rows


def test_wrapped_rows_are_rewrapped_when_the_viewer_is_resized() -> None:
    original = EmulatedTerminal(20, 5)
    original.feed(b"a line that is much longer than the terminal is wide, twice and again\r\nshort")
    viewer = attach_viewer(original)
    original.resize(50, 5)
    viewer.resize(50, 5)
    assert "much longer than the terminal" in viewer.text()
    assert_same(original, viewer)


@pytest.mark.parametrize("enter", [b"\x1b[?1049h", b"\x1b[?1047h", b"\x1b[?47h"])
def test_the_primary_screen_is_restored_below_the_alternate_one(enter: bytes) -> None:
    primary = LINES + b"\x1b[31m$ \x1b[>1u"
    leave = enter.replace(b"h", b"l")
    check(primary + enter + b"\x1b[2J\x1b[H\x1b[32mvim\x1b[>5u", b"\x1b[2;2Hx", leave, b"after\r\n")


def test_cursors_saved_on_either_screen_are_restored() -> None:
    check(b"\x1b[3;4H\x1b[1;33m\x1b7\x1b[H\x1b[0mx", b"\x1b8here")
    check(b"ab\x1b[?1049h\x1b[2;7H\x1b[4m\x1b7\x1b[H\x1b[0mx", b"\x1b8here", *LEAVE)
    check(b"\x1b[2;4r\x1b[?6h\x1b[2;2H\x1b7\x1b[?6l\x1b[H", b"\x1b8here")


@pytest.mark.parametrize(
    "state",
    [
        b"\x1b[2;4r",
        b"\x1b[2;4r\x1b[?6h\x1b[2;3H",
        b"\x1b[?69h\x1b[3;9s\x1b[2;5H",
        b"\x1b[?69h\x1b[3;9s\x1b[2;4r\x1b[?6h\x1b[1;2H",
        b"\x1b[?7l",
        b"\x1b[4h",
        b"\x1b[20h",
        b"\x1b[3g\x1b[5G\x1bH\r",
        b"\x1b(0",
        b"\x1b)0\x0e",
        b"\x1b[5 q",
        b'\x1b[1"q',
        b"\x1b[>4;2m",
        b"\x1b[>1u\x1b[>3u",
        b"\x1b]2;a title\x07",
        b"\x1b]8;id=x;http://a/?b=c\x07",
        b"\x1b]4;1;#102030\x07\x1b]11;#405060\x07",
        b"\x1b[?5h\x1b[?2026h",
    ],
    ids=repr,
)
def test_state_that_is_not_visible_is_restored(state: bytes) -> None:
    check(LINES + state, b"abc\tdef\r\nqqq", b"\x1b[<u\x1b[2;2Hz", b"\x1b[!p\x1b(B\x0fend")


def test_the_last_character_can_be_repeated() -> None:
    check(b"text|", b"\x1b[3b!")
    check("\x1b[31m日".encode(), b"\x1b[2b!")


def test_links_are_restored() -> None:
    check(b"see \x1b]8;;http://a/b\x07\x1b[4mhere\x1b[0m and on to the next row\x1b]8;;\x07 fin", b"\r\nx")


@pytest.mark.parametrize(
    ("half", "rest"),
    [
        (b"\x1b", b"[31mred"),
        (b"\x1b[3", b"1mred"),
        (b"\x1b]2;ti", b"tle\x07text"),
        (b"\x1b]8;;http://", b"a/b\x1b\\link"),
        (b"\x1bP$", b"qm\x1b\\text"),
        ("é".encode()[:1], "é".encode()[1:] + b"text"),
        ("日".encode()[:2], "日".encode()[2:] + b"text"),
    ],
)
def test_an_incomplete_sequence_continues_in_the_viewer(half: bytes, rest: bytes) -> None:
    check(b"text " + half, rest)
    check(b"below\x1b[?1049hfull screen" + half, rest, *LEAVE)


def test_a_viewer_inside_an_endless_sequence_ignores_it_as_well() -> None:
    emulation = ScreenEmulation.blank(20, 5)
    emulation.feed(b"shown\x1b]2;", 9)
    for _megabyte in range(CONTINUATION_MAX_BYTES + 1 >> 20, -1, -1):
        emulation.feed(b"x" * (1 << 20), 1 << 20)
    assert emulation.terminal.continuation() is None
    viewer = EmulatedTerminal(20, 5)
    assert viewer.feed(emulation.history().data) == []
    for terminal in (emulation.terminal, viewer):
        terminal.feed(b"still the title\x07 and on")
    assert viewer.text() == emulation.terminal.text() == "shown and on"


@pytest.mark.parametrize("mode", [b"1004", b"2031", b"2048"])
def test_modes_that_make_a_terminal_report_are_not_in_the_history(mode: bytes) -> None:
    assert mode not in render_after(b"\x1b[?%bh" % mode)


def test_basic_colours_have_their_short_codes() -> None:
    history = render_after(b"\x1b[1;31;42ma\x1b[0;97;104mb\x1b[38;5;100mc")
    for sequence in (b"\x1b[31m", b"\x1b[42m", b"\x1b[97m", b"\x1b[104m", b"\x1b[38;5;100m"):
        assert sequence in history
    assert not re.search(rb"[34]8;5;\d?\dm", history)


def test_queries_are_not_in_the_history() -> None:
    queries = b"\x1b[6n\x1b[c\x1b[>c\x1b]11;?\x07\x1b[?2004$p\x1bP$qm\x1b\\\x1b[18t\x1b[>q\x1b[?u\x05"
    original = EmulatedTerminal(20, 5)
    assert len(original.feed(b"before" + queries + b"after")) >= 8
    history = render(original)
    for _viewer in range(3):
        assert EmulatedTerminal(20, 5).feed(history) == []
    assert b"before" in history
    assert b"after" in history


def render_after(data: bytes) -> bytes:
    terminal = EmulatedTerminal(20, 5)
    terminal.feed(data)
    return render(terminal)


# What cannot be restored is left out: the last character for REP after the cursor has moved, saved modes,
# prompt marks, whether joined characters share a cell, where wide characters meet line drawing, and what
# the alternate screen remembers while the primary one is shown.
TOKENS = [
    *(b"hello ", b"world", b"0123456789abcdef", b"x" * 30, b"\r\n", b"\r\n", b"\n", b"\t", b"\b"),
    *("日本語".encode(), "é".encode(), "e\u0301".encode()),
    *(b"\x1b[31m", b"\x1b[0m", b"\x1b[1;44m", b"\x1b[48;2;1;2;3m", b"\x1b[4:3m"),
    *(
        b"\x1b[K",
        b"\x1b[1K",
        b"\x1b[2K",
        b"\x1b[J",
        b"\x1b[2J",
        b"\x1b[2L",
        b"\x1b[M",
        b"\x1b[3P",
        b"\x1b[4X",
    ),
    *(b"\x1b[H", b"\x1b[3;5H", b"\x1b[A", b"\x1b[2B", b"\x1b[5C", b"\x1b[3D", b"\x1bM", b"\x1bD", b"\x1bE"),
    *(b"\x1b7", b"\x1b8", b"\x1b[2;4r", b"\x1b[r", b"\x1b[?6h", b"\x1b[?6l", b"\x1b[?69h", b"\x1b[2;8s"),
    *(
        b"\x1b[?7l",
        b"\x1b[?7h",
        b"\x1b[4h",
        b"\x1b[4l",
        b"\x1b[20h",
        b"\x1b[?25l",
        b"\x1b[?2004h",
        b"\x1b[?1h",
    ),
    *(
        b"\x1b[0m\x1b[?1049h",
        b"\x1b[0m\x1b[?1049l",
        b"\x1b[?1000h",
        b"\x1b[?1006h",
        b"\x1b=",
        b"\x1bH",
        b"\x1b[3g",
    ),
    *(
        b"\x0e",
        b"\x0f",
        b"\x1b[5 q",
        b"\x1b[0 q",
        b"\x1b[>4;2m",
        b"\x1b]2;title\x07",
        b"\x1b]4;1;#102030\x07",
    ),
    *(b"\x1b[!p", b"\x1bc", b"\x1b#8", b'\x1b[1"q', b"\x1b]104\x07"),
]


@settings(max_examples=150, deadline=None)
@given(
    tokens=st.lists(st.sampled_from(TOKENS), max_size=30),
    later=st.lists(st.sampled_from(TOKENS), max_size=10),
    cut=st.floats(0, 1),
    size=st.sampled_from([(10, 5), (20, 6), (8, 3), (40, 10)]),
)
def test_a_viewer_equals_the_original_for_random_output(
    tokens: list[bytes], later: list[bytes], cut: float, size: tuple[int, int]
) -> None:
    data = b"".join(tokens)
    at = round(cut * len(data))
    check(data[:at], data[at:] + b"".join(later), cols=size[0], rows=size[1])


def colored_cells(number: int, cols: int) -> bytes:
    """Return a row in which each cell has colours of its own."""
    cells = (
        b"\x1b[38;2;%d;%d;7m\x1b[48;2;%d;%d;9mx" % (number % 256, x % 256, x % 256, number // 256)
        for x in range(cols)
    )
    return b"".join(cells) + b"\x1b[0m"


@pytest.mark.parametrize(("cols", "rows", "lines"), [(80, 24, 1000), (500, 80, 80)])
@pytest.mark.parametrize("alternate", [False, True])
def test_the_history_of_any_colours_is_within_a_megabyte(
    cols: int, rows: int, lines: int, alternate: bool
) -> None:
    """The newest rows are kept; the second screen has no room as a whole."""
    original = EmulatedTerminal(cols, rows)
    for number in range(lines):
        original.feed(b"%06d " % number + colored_cells(number, cols - 7) + b"\r\n")
    if alternate:
        original.feed(b"\x1b[?1049h" + colored_cells(1, cols * (rows - 5)) + b"\r\nbelow\r\n")
    history = render(original)
    assert 0.8 * MAX_HISTORY_BYTES < len(history) <= MAX_HISTORY_BYTES
    viewer = EmulatedTerminal(cols, rows)
    viewer.feed(history)
    assert viewer.cursor == original.cursor
    shown, expected = (
        [styled_row(terminal, terminal.scrollback_rows + y) for y in range(rows)]
        for terminal in (viewer, original)
    )
    left_out = [y for y in range(rows) if shown[y] != expected[y]]
    assert left_out == list(range(left_out[0], left_out[-1] + 1) if left_out else [])
    if cols == 80:
        assert left_out == []
    else:
        assert 0 < len(left_out) < 40
        assert left_out[-1] < rows - 10


def test_a_long_unfinished_sequence_is_sent_as_its_head() -> None:
    emulation = ScreenEmulation.blank(20, 5)
    for piece in (b"before\x1b]2;", b"t" * MAX_HISTORY_BYTES):
        emulation.feed(piece, len(piece))
    viewer = EmulatedTerminal(20, 5)
    history = emulation.history().data
    assert len(history) < 1000
    viewer.feed(history + b"more\x07after")
    emulation.feed(b"more\x07after", 10)
    assert viewer.text() == emulation.terminal.text()
