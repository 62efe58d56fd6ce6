"""Render an emulated terminal as bytes that make an empty terminal of the same size show the same screen.

The formatter of the library is not enough: it drops blank rows at the end, blank rows with a background,
hyperlinks, the primary screen below the alternate one, the saved cursor and unfinished sequences. So the rows
are assembled here. State that can only be read by changing it is read from a clone. The result has at most
MAX_HISTORY_BYTES: beyond that, the oldest rows are left out.
"""

import re
from collections.abc import Iterable, Iterator

from .ghostty import Color, EmulatedTerminal
from .ghostty_grid import Grid

MAX_HISTORY_BYTES = 1_000_000
MAX_CONTINUATION_BYTES = 100_000  # of an unfinished sequence
RESET_PEN = b'\x1b[0m\x1b]8;;\x1b\\\x1b[0"q'
RESET_CHARSETS = b"\x1b(B\x1b)B\x1b*B\x1b+B\x0f\x1b}"
ALTERNATE_MODES = (1049, 1047, 47)
ORIGIN, SIDE_MARGINS, GRAPHEMES = 6, 69, 2027
# Modes that are not simply set: 132 columns (3) would clear the screen, blinking (12) is part of the cursor
# shape, 1048 saves the cursor, and those with names are handled separately. A viewer must not cause input by
# attaching: xterm.js would report its focus (1004) at once. Themes (2031) and sizes (2048) are reported by
# the emulator only.
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


def render(terminal: EmulatedTerminal, head: bytes = b"") -> bytes:
    """Return the bytes that draw the screen; after them a terminal is ready for the next output.

    `head` is the start of the sequence that the terminal is inside of. It is sent in place of a long one: a
    viewer then skips the rest.
    """
    clone = terminal.clone()
    clone.feed(b"\x18")  # cancels an unfinished sequence; state that this may change is not read below
    shape, keyboard, saved_pen = _cursor_shape(clone), _keyboard(clone), _saved_pen(clone)
    before, after = _before_rows(terminal), saved_pen + keyboard + shape + _after_rows(terminal)
    unfinished = terminal.continuation() or b""
    if len(unfinished) > MAX_CONTINUATION_BYTES:
        unfinished = head
    room = MAX_HISTORY_BYTES - len(before) - len(after) - len(unfinished)
    rows = _newest(_rows(terminal), terminal, room)
    below = _primary_below(clone, room - len(rows)) if terminal.is_alternate else b""
    return _basic(before + below + rows + after) + unfinished


def render_without_clone(terminal: EmulatedTerminal, head: bytes) -> bytes:
    """Return the bytes that draw the screen, but not the primary screen below it and the saved cursor.

    It is used for a terminal that cannot be encoded, and therefore not cloned.
    """
    enter = _enter_alternate(terminal) if terminal.is_alternate else b""
    before, after = _before_rows(terminal) + enter, _after_rows(terminal)
    room = MAX_HISTORY_BYTES - len(before) - len(after) - len(head)
    return _basic(before + _newest(_rows(terminal), terminal, room) + after) + head


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
    into_screen = b"\x1b[%d;%dH" % (y + 1, cols) if x >= cols else b""
    return b"".join([RESET_PEN, *cut, _pen(terminal), into_screen]) if cut else b""


def _cut(y: int, cols: int) -> bytes:
    """Return the bytes that erase a row from column `cols` on."""
    return b"\x1b[%d;%dH\x1b[K" % (y + 1, cols + 1)


def _end_again(terminal: EmulatedTerminal, y: int) -> bytes:
    """Return the bytes that print the last character of a row again, which ends its wrapping."""
    start, character = _character(terminal, terminal.cols - 1, y)
    place = b"\x1b[%d;%dH" % (y - terminal.scrollback_rows + 1, start + 1)
    return place + b"\x1b[K" + character + RESET_PEN


def _basic(drawn: bytes) -> bytes:
    """Return the bytes with short codes for 16 colours: many terminals brighten bold text only then."""
    return PALETTE_COLOR.sub(lambda found: BASIC_COLORS[found[0]], drawn)


def _before_rows(terminal: EmulatedTerminal) -> bytes:
    """Return the bytes that set the state of the terminal before the rows are drawn."""
    title = b"\x1b]2;%s\x1b\\" % terminal.title if terminal.title else b""
    graphemes = b"\x1b[?%dh" % GRAPHEMES if terminal.mode(GRAPHEMES) else b""  # how wide characters are
    return _colors(terminal) + title + graphemes


def _after_rows(terminal: EmulatedTerminal) -> bytes:
    """Return the bytes that restore the state of the terminal after the rows are drawn."""
    state = terminal.extras("tabstops") + _region(terminal) + terminal.extras("keyboard") + _pen(terminal)
    return state + _modes(terminal)  # last: without wrapping, the pen could not be put at the end of a row


def _primary_below(clone: EmulatedTerminal, room: int) -> bytes:
    """Return the bytes that draw the primary screen and enter the alternate one as the program did."""
    enter = _enter_alternate(clone)
    clone.feed(enter.replace(b"h", b"l"))
    rows = list(_rows(clone))
    after = _keyboard(clone) + _saved_pen(clone, then=enter) + b"\x1b[H"
    return _newest(rows, clone, room - len(after)) + after


def _enter_alternate(terminal: EmulatedTerminal) -> bytes:
    """Return the sequences that enter the alternate screen."""
    return b"".join(b"\x1b[?%dh" % mode for mode in ALTERNATE_MODES if terminal.mode(mode)) or b"\x1b[?1047h"


# Rows


def _newest(drawn: Iterable[bytes], terminal: EmulatedTerminal, room: int) -> bytes:
    """Return the newest rows that fit into `room` bytes; older rows of the screen itself are drawn blank."""
    rows = list(drawn)
    first = len(rows)
    blank = terminal.rows * len(b"\r\n")
    while first and (room := room - len(rows[first - 1])) >= blank:
        first -= 1
    return b"\r\n" * max(0, first - terminal.scrollback_rows) + b"".join(rows[first:])


def _rows(terminal: EmulatedTerminal) -> Iterator[bytes]:
    """Yield each row of scrollback and screen with its end.

    Wrapped rows are joined, so that a later resize can rewrap them.
    """
    grid, styled = terminal.grid, terminal.styled_rows()
    for y, row in enumerate(styled):
        flags = grid.row(y)
        following = styled[y + 1] if y + 1 < len(styled) else b""
        joined = flags.wraps and row and following and grid.is_filled_to_the_edge(y)
        drawn = _text_row(terminal, grid, y, row) if row else _blank_row(terminal, grid, y)
        links = _links(terminal, grid, y) if flags.has_links else b""
        yield drawn + links + (b"\r\n" if y + 1 < len(styled) and not joined else b"")


def _text_row(terminal: EmulatedTerminal, grid: Grid, y: int, row: bytes) -> bytes:
    """Return the bytes that draw a row with text; draw each written span by itself if spaces have colours."""
    if not STYLED_SPACE.search(row):
        return row
    written = grid.written(y)
    if len(written) == 1 and written[0].start == 0:
        return row
    # The formatter gives blank cells the colours of the text before them, so each span is drawn by itself.
    # Spaces lead to the first span: moving the cursor would break a row that continues the one above.
    drawn = [b" " * written[0].start]
    for start, end, _value in written:
        drawn.append(b"\x1b[%dG" % (start + 1) if len(drawn) > 1 else b"")
        drawn.append(terminal.styled_cells(y, start, end) or _colored(grid, y, start, end))
    return b"".join(drawn)


def _blank_row(terminal: EmulatedTerminal, grid: Grid, y: int) -> bytes:
    """Return the bytes that draw a row without text: its backgrounds, if any."""
    # In the scrollback only two cells are checked: there may be thousands of blank rows.
    if y < terminal.scrollback_rows and not grid.has_coloured_end(y):
        return b""
    return _colored(grid, y, 0, terminal.cols)


def _colored(grid: Grid, y: int, start: int, end: int) -> bytes:
    """Return the bytes that draw the backgrounds of cells without text."""
    spans = [span for span in grid.backgrounds(y) if start <= span.start < end]
    drawn = (b"\x1b[%dG\x1b[%sm\x1b[%dX" % (s.start + 1, s.value, s.end - s.start) for s in spans)
    return b"".join(drawn) + b"\x1b[0m" if spans else b""


def _links(terminal: EmulatedTerminal, grid: Grid, y: int) -> bytes:
    """Return the bytes that print the links of a row over it, and leave the cursor at the end of the row."""
    drawn, end = bytearray(), 0
    for start, end, uri in grid.links(y):
        drawn += b"\x1b[%dG" % (start + 1) + _linked(uri, terminal.styled_cells(y, start, end))
    if end < terminal.cols and grid.is_filled_to_the_edge(y):
        start, character = _character(terminal, terminal.cols - 1, y)
        drawn += b"\x1b[%dG" % (start + 1) + character
    return bytes(drawn)


def _linked(uri: bytes, text: bytes) -> bytes:
    """Return the text as a hyperlink, or as it is without a URI."""
    return b"\x1b]8;;%s\x1b\\%s\x1b]8;;\x1b\\" % (uri, text) if uri else text


def _character(terminal: EmulatedTerminal, x: int, y: int) -> tuple[int, bytes]:
    """Return the column in which the character of a cell begins, and the bytes that print it."""
    grid = terminal.grid
    start = x - 1 if x and grid.is_second_half(x, y) else x
    return start, _linked(grid.link(start, y), terminal.styled_cells(y, start, x + 1))


# The cursor and its drawing state


def _pen(terminal: EmulatedTerminal) -> bytes:
    """Return the bytes that set position, colours, link, protection and character sets of the cursor."""
    origin = b"\x1b[?6h" if terminal.mode(ORIGIN) else b""
    drawing = terminal.extras("style", "hyperlink", "protection", "charsets")
    return origin + _last_character(terminal) + drawing


def _last_character(terminal: EmulatedTerminal) -> bytes:
    """Return the bytes that place the cursor by printing its last character again.

    In the last column that leaves the wrap pending. Elsewhere a program may repeat the character next (REP).
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


def _saved_pen(clone: EmulatedTerminal, then: bytes = b"") -> bytes:
    """Return the bytes that save the cursor which the program has saved, then `then`, then a reset."""
    clone.feed(b"\x1b8")
    before = after = b""
    if clone.mode(ORIGIN):
        before, after = _region(clone), b"\x1b[?6l\x1b[?69l\x1b[r"
    charsets = RESET_CHARSETS if clone.extras("charsets") else b""
    return before + _pen(clone) + b"\x1b7" + then + RESET_PEN + charsets + after


def _origin(terminal: EmulatedTerminal) -> tuple[int, int]:
    """Return the row and column that are the first ones while the origin mode is set."""
    region = _region(terminal)
    top, left = re.search(rb"\[(\d+);\d+r", region), re.search(rb"\[(\d+);\d+s", region)
    return int(top[1]) - 1 if top else 0, int(left[1]) - 1 if left else 0


def _cursor_shape(clone: EmulatedTerminal) -> bytes:
    """Return the sequence that sets the shape of the cursor."""
    answer = b"".join(clone.feed(b"\x1bP$q q\x1b\\"))
    shape = re.search(rb"r(\d+) q", answer)
    return b"\x1b[%s q" % shape[1] if shape and shape[1] != DEFAULT_CURSOR_SHAPE else b""


# Modes, scroll region, keyboard and colours


def _modes(terminal: EmulatedTerminal) -> bytes:
    """Return the sequences that set the modes that differ from the defaults."""
    changed = re.finditer(rb"\x1b\[(\??)(\d+)[hl]", terminal.extras("modes"))
    return b"".join(mode[0] for mode in changed if not (mode[1] and int(mode[2]) in MODES_LEFT_OUT))


def _region(terminal: EmulatedTerminal) -> bytes:
    """Return the bytes that set the scroll region; its left and right margins need a mode of their own."""
    sides = b"\x1b[?%dh" % SIDE_MARGINS if terminal.mode(SIDE_MARGINS) else b""
    return sides + terminal.extras("scrolling_region")


def _keyboard(clone: EmulatedTerminal) -> bytes:
    """Return the bytes that set the stack of kitty keyboard flags, read by popping it from the clone."""
    stack = []
    for _ in range(KITTY_KEYBOARD_DEPTH):
        stack.append(clone.kitty_keyboard_flags)
        clone.feed(b"\x1b[<u")
    while stack and not stack[-1]:
        stack.pop()
    return b"".join(b"\x1b[>%du" % flags for flags in reversed(stack))


def _colors(terminal: EmulatedTerminal) -> bytes:
    """Return the sequences that set the colours which a program has changed.

    All other colours stay those of the viewer.
    """
    parts = [
        b"\x1b]4;%d;%s\x1b\\" % (index, _color_spec(color)) for index, color in terminal.palette_changes()
    ]
    for number, which in ((10, "FOREGROUND"), (11, "BACKGROUND"), (12, "CURSOR")):
        color = terminal.color(which)
        if color and color != terminal.color(f"{which}_DEFAULT"):
            parts.append(b"\x1b]%d;%s\x1b\\" % (number, _color_spec(color)))
    return b"".join(parts)


def _color_spec(color: Color) -> bytes:
    """Return a colour in the notation of OSC sequences."""
    return b"rgb:%02x/%02x/%02x" % color
