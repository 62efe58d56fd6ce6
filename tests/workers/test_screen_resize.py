"""A resize does not rewrap the line of the cursor: the shell redraws its prompt after each resize."""

import pytest

from bullpen.workers.screen_emulation import ScreenEmulation

PROMPT = b"\x1b[32muser@host:~/some/long/dir\x1b[m$ "
COLS, NARROW, ROWS = 40, 20, 6


def screen_with(data: bytes, cols: int = COLS) -> ScreenEmulation:
    emulation = ScreenEmulation.blank(cols, ROWS)
    emulation.feed(data, len(data))
    return emulation


def redraw(rows_above: int) -> bytes:
    """Return what readline prints after a resize: it clears the rows of its prompt and prints it again."""
    return b"\r\x1b[K" + b"\x1b[A\r\x1b[K" * rows_above + PROMPT


def test_a_prompt_that_no_longer_fits_is_shown_once_after_the_shell_redrew_it() -> None:
    emulation = screen_with(b"output\r\n" + PROMPT)
    emulation.resize(NARROW, ROWS)
    emulation.feed(redraw(0), 1)
    assert emulation.terminal.text().split() == ["output", "user@host:~/some/lon", "g/dir$"]


def test_a_prompt_of_two_rows_overwrites_nothing_when_the_terminal_gets_wider() -> None:
    emulation = screen_with(b"output\r\n" + PROMPT, NARROW)
    emulation.resize(COLS, ROWS)
    emulation.feed(redraw(1), 1)
    assert emulation.terminal.text().splitlines() == ["output", "user@host:~/some/long/dir$"]


def test_lines_above_the_cursor_are_still_rewrapped() -> None:
    emulation = screen_with(b"a line of more than twenty columns\r\n> ")
    emulation.resize(NARROW, ROWS)
    emulation.resize(COLS, ROWS)
    assert emulation.terminal.text().splitlines() == ["a line of more than twenty columns", ">"]


@pytest.mark.parametrize("cols", [NARROW, 2 * COLS])
def test_the_text_style_is_kept_after_a_resize(cols: int) -> None:
    emulation = screen_with(b"\x1b[31m" + b"x" * (COLS + 3))
    emulation.resize(cols, ROWS)
    emulation.feed(b"red", 3)
    assert b"\x1b[38;5;1m" in emulation.terminal.extras("style") or b"\x1b[31m" in emulation.terminal.extras(
        "style"
    )
