"""The bytes that make a fresh terminal of the same size show what an emulated one shows.

The formatter of the library alone is not enough: it drops blank rows at the end, blank rows with a
background, hyperlinks, the primary screen under the alternate one, the saved cursor and half sequences.
So the rows are put together here, and what has to be asked for is asked of a clone.
"""

import re
from collections.abc import Iterator

from .ghostty import Color, EmulatedTerminal
from .ghostty_grid import Grid

RESET_PEN = b'\x1b[0m\x1b]8;;\x1b\\\x1b[0"q'
RESET_CHARSETS = b"\x1b(B\x1b)B\x1b*B\x1b+B\x0f\x1b}"
ALTERNATE_MODES = (1049, 1047, 47)
ORIGIN, SIDE_MARGINS, GRAPHEMES = 6, 69, 2027
# Modes that are not simply said: 132 columns (3) would clear the screen, the blinking (12) belongs to the
# cursor's shape, saving the cursor (1048) is an act, those with names come in their turn. And nobody types
# anything by attaching: xterm.js reports its focus (1004) as soon as it is asked to, and of themes (2031)
# and sizes (2048) the emulator alone reports.
MODES_LEFT_OUT = {3, 12, 1004, 1048, 2031, 2048, ORIGIN, SIDE_MARGINS, GRAPHEMES, *ALTERNATE_MODES}
STYLED_SPACE = re.compile(rb"\x1b\[(?!0m)[0-9;:]*m[^\x1b]* ")
PALETTE_COLOR = re.compile(rb"\x1b\[[34]8;5;(?:\d|1[0-5])m")
BASIC_COLORS = {
    b"\x1b[%d;5;%dm" % (ground + 8, color): b"\x1b[%dm" % (ground + color + (52 if color > 7 else 0))
    for ground in (30, 40)
    for color in range(16)
}
DEFAULT_CURSOR_SHAPE = b"2"
KITTY_KEYBOARD_DEPTH = 8


def render(terminal: EmulatedTerminal) -> bytes:
    """Draws the screen and leaves the receiving terminal ready for the next byte of the program."""
    aside = terminal.clone()
    aside.feed(b"\x18")  # ends a half sequence; nothing that it may have done is read below
    shape, keyboard, saved_pen = _cursor_shape(aside), _keyboard(aside), _saved_pen(aside)
    below = _primary_below(aside) if terminal.is_alternate else ()
    parts = [*_before_rows(terminal), *below, *_rows(terminal), saved_pen, keyboard, shape]
    return _join([*parts, *_after_rows(terminal)]) + (terminal.continuation() or b"")


def render_without_clone(terminal: EmulatedTerminal) -> bytes:
    """The same for a terminal that cannot be encoded: what is shown, not what lies below or was saved."""
    enter = _enter_alternate(terminal) if terminal.is_alternate else b""
    return _join([*_before_rows(terminal), enter, *_rows(terminal), *_after_rows(terminal)])


def unwrap_cursor_line(terminal: EmulatedTerminal, cols: int) -> bytes:
    """Return the bytes that keep a change to `cols` columns from rewrapping the line of the cursor.

    A shell redraws its prompt after a resize and counts the rows as they were; xterm.js leaves that line
    to the shell for the same reason. The line is cut to the new width, or its rows are separated.
    """
    plain = not (terminal.mode(ORIGIN) or terminal.mode(SIDE_MARGINS))
    if cols == terminal.cols or terminal.is_alternate or not terminal.is_ground or not plain:
        return b""
    grid, above = terminal.grid, terminal.scrollback_rows
    top = bottom = above + terminal.cursor.y
    while top > above and grid.row(top - 1).wraps:
        top -= 1
    while bottom + 1 < above + terminal.rows and grid.row(bottom).wraps:
        bottom += 1
    narrower = cols < terminal.cols
    rows = [y for y in range(top, bottom + 1) if narrower or grid.row(y).wraps]
    cut = [_cut(y - above, cols) if narrower else _end_again(terminal, y) for y in rows]
    x, y = terminal.cursor[:2]
    inside = b"\x1b[%d;%dH" % (y + 1, cols) if x >= cols else b""
    return b"".join([RESET_PEN, *cut, _pen(terminal), inside]) if cut else b""


def _cut(y: int, cols: int) -> bytes:
    return b"\x1b[%d;%dH\x1b[K" % (y + 1, cols + 1)


def _end_again(terminal: EmulatedTerminal, y: int) -> bytes:
    """Erase the last character of a row, which ends its wrapping, and print it once more."""
    start, character = _character(terminal, terminal.cols - 1, y)
    place = b"\x1b[%d;%dH" % (y - terminal.scrollback_rows + 1, start + 1)
    return place + b"\x1b[K" + character + RESET_PEN


def _join(parts: list[bytes]) -> bytes:
    """Names the first 16 colours the way programs do: many terminals brighten bold text only then."""
    return PALETTE_COLOR.sub(lambda found: BASIC_COLORS[found[0]], b"".join(parts))


def _before_rows(terminal: EmulatedTerminal) -> Iterator[bytes]:
    yield _colors(terminal)
    yield b"\x1b]2;%s\x1b\\" % terminal.title if terminal.title else b""
    yield b"\x1b[?%dh" % GRAPHEMES if terminal.mode(GRAPHEMES) else b""  # says how wide characters are


def _after_rows(terminal: EmulatedTerminal) -> Iterator[bytes]:
    yield terminal.extras("tabstops")
    yield _region(terminal)
    yield terminal.extras("keyboard")
    yield _pen(terminal)
    yield _modes(terminal)  # last: without wrapping, the pen could not be put at the end of a row


def _primary_below(aside: EmulatedTerminal) -> Iterator[bytes]:
    """Draws the primary screen and goes over to the alternate one, the way the program went."""
    enter = _enter_alternate(aside)
    aside.feed(enter.replace(b"h", b"l"))
    yield from _rows(aside)
    yield _keyboard(aside)
    yield _saved_pen(aside, then=enter)
    yield b"\x1b[H"


def _enter_alternate(terminal: EmulatedTerminal) -> bytes:
    return b"".join(b"\x1b[?%dh" % mode for mode in ALTERNATE_MODES if terminal.mode(mode)) or b"\x1b[?1047h"


# Rows


def _rows(terminal: EmulatedTerminal) -> Iterator[bytes]:
    """Scrollback and screen. Rows that belong together are joined, so that a later resize can wrap them."""
    grid, styled = terminal.grid, terminal.styled_rows()
    for y, row in enumerate(styled):
        flags = grid.row(y)
        following = styled[y + 1] if y + 1 < len(styled) else b""
        joined = flags.wraps and row and following and grid.is_filled_to_the_edge(y)
        yield _text_row(terminal, grid, y, row) if row else _blank_row(terminal, grid, y)
        if flags.has_links:
            yield _links(terminal, grid, y)
        if y + 1 < len(styled) and not joined:
            yield b"\r\n"


def _text_row(terminal: EmulatedTerminal, grid: Grid, y: int, row: bytes) -> bytes:
    if not STYLED_SPACE.search(row):
        return row
    written = grid.written(y)
    if len(written) == 1 and written[0].start == 0:
        return row
    # The formatter gives blank cells the colours of the text before them, so each stretch is drawn by itself;
    # spaces lead to the first, since moving the cursor would break a row that goes on from the one above.
    drawn = [b" " * written[0].start]
    for start, end, _value in written:
        drawn.append(b"\x1b[%dG" % (start + 1) if len(drawn) > 1 else b"")
        drawn.append(terminal.styled_cells(y, start, end) or _colored(grid, y, start, end))
    return b"".join(drawn)


def _blank_row(terminal: EmulatedTerminal, grid: Grid, y: int) -> bytes:
    # In the scrollback two cells stand for the row: there may be thousands of blank ones.
    if y < terminal.scrollback_rows and not grid.is_coloured_at_an_end(y):
        return b""
    return _colored(grid, y, 0, terminal.cols)


def _colored(grid: Grid, y: int, start: int, end: int) -> bytes:
    """Draws the backgrounds of cells without text."""
    spans = [span for span in grid.backgrounds(y) if start <= span.start < end]
    drawn = (b"\x1b[%dG\x1b[%sm\x1b[%dX" % (s.start + 1, s.value, s.end - s.start) for s in spans)
    return b"".join(drawn) + b"\x1b[0m" if spans else b""


def _links(terminal: EmulatedTerminal, grid: Grid, y: int) -> bytes:
    """Prints the links of a row over it; ends where the row itself ended."""
    drawn, end = bytearray(), 0
    for start, end, uri in grid.links(y):
        drawn += b"\x1b[%dG" % (start + 1) + _linked(uri, terminal.styled_cells(y, start, end))
    if end < terminal.cols and grid.is_filled_to_the_edge(y):
        start, character = _character(terminal, terminal.cols - 1, y)
        drawn += b"\x1b[%dG" % (start + 1) + character
    return bytes(drawn)


def _linked(uri: bytes, text: bytes) -> bytes:
    return b"\x1b]8;;%s\x1b\\%s\x1b]8;;\x1b\\" % (uri, text) if uri else text


def _character(terminal: EmulatedTerminal, x: int, y: int) -> tuple[int, bytes]:
    """The column where the character in a cell begins, and what prints it."""
    grid = terminal.grid
    start = x - 1 if x and grid.is_second_half(x, y) else x
    return start, _linked(grid.link(start, y), terminal.styled_cells(y, start, x + 1))


# The cursor and what it draws with


def _pen(terminal: EmulatedTerminal) -> bytes:
    """Position, colours, link, protection and character sets of the cursor."""
    origin = b"\x1b[?6h" if terminal.mode(ORIGIN) else b""
    drawing = terminal.extras("style", "hyperlink", "protection", "charsets")
    return origin + _last_character(terminal) + drawing


def _last_character(terminal: EmulatedTerminal) -> bytes:
    """Puts the cursor where it is by printing what it printed last once more.

    In the last column that leaves the wrap pending, elsewhere it serves a program that now says how often
    to repeat it (REP).
    """
    top, left = _origin(terminal) if terminal.mode(ORIGIN) else (0, 0)
    x, y, pending_wrap, _visible = terminal.cursor
    position = b"\x1b[%d;%dH" % (y - top + 1, x - left + 1)
    if x <= left and not pending_wrap:
        return position
    start, character = _character(terminal, x if pending_wrap else x - 1, terminal.scrollback_rows + y)
    printed = b"\x1b[%d;%dH" % (y - top + 1, start - left + 1) + (character or b" ")
    if pending_wrap:
        return printed
    return printed + position if character else position


def _saved_pen(aside: EmulatedTerminal, then: bytes = b"") -> bytes:
    """Saves the cursor that the program has saved; `then` is said before the pen is put away."""
    aside.feed(b"\x1b8")
    before = after = b""
    if aside.mode(ORIGIN):
        before, after = _region(aside), b"\x1b[?6l\x1b[?69l\x1b[r"
    charsets = RESET_CHARSETS if aside.extras("charsets") else b""
    return before + _pen(aside) + b"\x1b7" + then + RESET_PEN + charsets + after


def _origin(terminal: EmulatedTerminal) -> tuple[int, int]:
    """Row and column that count as the first ones while the origin mode is on."""
    region = _region(terminal)
    top, left = re.search(rb"\[(\d+);\d+r", region), re.search(rb"\[(\d+);\d+s", region)
    return int(top[1]) - 1 if top else 0, int(left[1]) - 1 if left else 0


def _cursor_shape(aside: EmulatedTerminal) -> bytes:
    answer = b"".join(aside.feed(b"\x1bP$q q\x1b\\"))
    shape = re.search(rb"r(\d+) q", answer)
    return b"\x1b[%s q" % shape[1] if shape and shape[1] != DEFAULT_CURSOR_SHAPE else b""


# Everything else


def _modes(terminal: EmulatedTerminal) -> bytes:
    changed = re.finditer(rb"\x1b\[(\??)(\d+)[hl]", terminal.extras("modes"))
    return b"".join(mode[0] for mode in changed if not (mode[1] and int(mode[2]) in MODES_LEFT_OUT))


def _region(terminal: EmulatedTerminal) -> bytes:
    """The scroll region; its sides need a mode of their own."""
    sides = b"\x1b[?%dh" % SIDE_MARGINS if terminal.mode(SIDE_MARGINS) else b""
    return sides + terminal.extras("scrolling_region")


def _keyboard(aside: EmulatedTerminal) -> bytes:
    """The stack of kitty keyboard flags, which is popped from the clone to be read."""
    stack = []
    for _ in range(KITTY_KEYBOARD_DEPTH):
        stack.append(aside.kitty_keyboard_flags)
        aside.feed(b"\x1b[<u")
    while stack and not stack[-1]:
        stack.pop()
    return b"".join(b"\x1b[>%du" % flags for flags in reversed(stack))


def _colors(terminal: EmulatedTerminal) -> bytes:
    """The colours a program has set; all others are the viewer's own."""
    said = [b"\x1b]4;%d;%s\x1b\\" % (index, _spec(color)) for index, color in terminal.palette_changes()]
    for number, which in ((10, "FOREGROUND"), (11, "BACKGROUND"), (12, "CURSOR")):
        color = terminal.color(which)
        if color and color != terminal.color(f"{which}_DEFAULT"):
            said.append(b"\x1b]%d;%s\x1b\\" % (number, _spec(color)))
    return b"".join(said)


def _spec(color: Color) -> bytes:
    return b"rgb:%02x/%02x/%02x" % color
