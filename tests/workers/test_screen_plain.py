"""A flood of plain text is shortened to its end without a difference on the screen."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bullpen.workers.ghostty import EmulatedTerminal
from bullpen.workers.screen_plain import PlainRun, forgets_all_rows, is_plain, lines_to_forget

COLS, ROWS = 200, 10
PRIOR = [
    *(
        b"\x1b[?1049h",
        b"\x1b[?7l",
        b"\x1b[4h",
        b"\x1b[?6h",
        b"\x1b[20h",
        b"\x1b[44m",
        b"\x1b[1;4:3m",
        b"\x1b(0",
    ),
    *(
        b"\x1b)0\x0e",
        b"\x1b]8;;http://a/b\x07",
        b"\x1b[3g\x1b[7G\x1bH",
        b'\x1b[1"q',
        b"\x1b[?69h",
        b"\x1b[?5h",
    ),
    *(
        b"\x1b[5;5H",
        b"\x1b[10;1H",
        b"\x1b[J",
        b"\x1b7",
        b"text ",
        b"x" * 199,
        b"\r\n",
        "日本".encode(),
        b"\x1bN",
    ),
    *(b"\x1b]133;A\x07", b"\x1b]133;B\x07", b"\x1b[?2027h", b"\x1b[?45h", b"\x1b[31mold\r\n" * 3000),
]
LINES = [
    *(
        b"",
        b"a line",
        b"word " * 50,
        b"a\tb\tc",
        b"10%\r20%\r100%",
        b"x" * 200,
        b"x" * 201,
        b"down\nand right",
    ),
]


def observable_state(terminal: EmulatedTerminal, rows: int) -> dict[str, object]:
    grid, styled = terminal.grid, terminal.styled_rows()
    last = range(len(styled) - rows, len(styled))
    return {
        "rows": [styled[y] for y in last],
        "flags": [grid.row(y) for y in last],
        "backgrounds": [grid.backgrounds(y) for y in last if not styled[y]][:20],
        "cursor": terminal.cursor,
        "alternate": terminal.is_alternate,
        "modes": terminal.extras("modes"),
        "pen": terminal.extras("style", "hyperlink", "protection", "charsets"),
        "tabstops": terminal.extras("tabstops"),
    }


def shorten(terminal: EmulatedTerminal, text: bytes, block: int) -> bytes:
    """Return the end of the text that the terminal still needs."""
    run = PlainRun(lines_to_forget(terminal))
    for start in range(0, len(text), block):
        assert is_plain(text[start : start + block])
        run.add(text[start : start + block])
    return run.text()


@settings(max_examples=40, deadline=None)
@given(
    prior=st.lists(st.sampled_from(PRIOR), max_size=8),
    seed=st.integers(0, 1000),
    end=st.sampled_from([b"", b"the end", b"x" * 200, b"\r"]),
    block=st.sampled_from([5000, 16384]),
)
def test_text_that_was_left_out_makes_no_difference_on_the_screen(
    prior: list[bytes], seed: int, end: bytes, block: int
) -> None:
    whole, short = EmulatedTerminal(COLS, ROWS), EmulatedTerminal(COLS, ROWS)
    whole.feed(b"".join(prior))
    short.feed(b"".join(prior))
    assert forgets_all_rows(whole)
    text = b"\r\n".join([*random.Random(seed).choices(LINES, k=5000), end])
    needed = shorten(short, text, block)
    assert len(needed) < len(text)
    whole.feed(text)
    short.feed(needed)
    rows = min(whole.scrollback_rows, short.scrollback_rows) + ROWS
    assert observable_state(short, rows) == observable_state(whole, rows)
    assert whole.is_alternate or rows > 200


@pytest.mark.parametrize("kept", [b"\x1b[2;4r", b"\x1b[?69h\x1b[3;9s", b"\x1b[3", b"\xc3"])
def test_nothing_is_left_out_while_rows_are_fixed_or_a_sequence_is_open(kept: bytes) -> None:
    terminal = EmulatedTerminal(COLS, ROWS)
    terminal.feed(kept)
    assert not forgets_all_rows(terminal)


@pytest.mark.parametrize(
    "other", [b"\x1b", b"\x07", b"\x0e", b"\x05", b"\x00", b"\x08", b"\x0b", b"\x7f", b"\x9b", "é".encode()]
)
def test_text_with_a_control_or_non_ascii_byte_is_not_plain(other: bytes) -> None:
    assert is_plain(b"text\t\r\n ~")
    assert not is_plain(b"text" + other + b"text")


@pytest.mark.parametrize("text", [b"no line end " * 100_000, b"only a feed\n" * 100_000, b"a line\r\n" * 100])
def test_text_without_enough_complete_lines_is_not_shortened(text: bytes) -> None:
    assert shorten(EmulatedTerminal(COLS, ROWS), text, 16384) == text
