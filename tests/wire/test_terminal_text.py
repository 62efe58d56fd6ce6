"""The output of terminals as text for the search index."""

import pytest

from bullpen.wire.terminal_text import (
    MAX_HELD_BYTES,
    MAX_WORD_LENGTH,
    PIECE_BYTES,
    TerminalText,
    TextPiece,
    complete_length,
)


def texts(data: bytes) -> list[str]:
    return [piece.text for piece in TerminalText().read(data, 0)]


@pytest.mark.parametrize(
    ("printed", "text"),
    [
        (b"plain words\r\n", "plain words"),
        (b"\x1b[1;31merror\x1b[0m: it \x1b[4mbroke\x1b[m\r\n", "error: it broke"),
        (b"needle\x1b[m\x1b[Kwork\n", "needlework"),  # grep colours a part of a word like this
        (b"\x1b]0;a title\x07shown\n", "shown"),
        (b"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\\n", "link"),
        (b"\x1b[2;5Hleft\x1b[2;40Hright\x1b[3Cfurther", "left\nright further"),
        (b"10%\r20%\r\n", "10%\n20%"),
        (b"bell\x07 and\x08 tab\tstop\n", "bell and tab stop"),
        ("größe 日本\n".encode(), "größe 日本"),
        (b"half \xff\xfe bytes\n", "half \ufffd\ufffd bytes"),
        (b"cut off \x1b[38;5", "cut off"),
        (b"\x1bPq" + b"x" * 50 + b"\x1b\\after an image\n", "after an image"),
    ],
)
def test_control_sequences_are_left_out(printed: bytes, text: str) -> None:
    assert texts(printed) == [text]


def test_text_that_is_drawn_repeatedly_counts_once() -> None:
    terminal = TerminalText()
    assert [piece.text for piece in terminal.read(b"\x1b[Hmenu\x1b[2;1Hone", 0)] == ["menu\none"]
    assert [piece.text for piece in terminal.read(b"\x1b[Hmenu\x1b[2;1Htwo", 20)] == ["two"]
    assert terminal.read(b"y\n" * 100_000, 40) == [TextPiece(40, "y")]


def test_long_text_comes_in_pieces_with_their_offsets() -> None:
    lines = [f"line number {number}\r\n".encode() for number in range(1000)]
    data = b"".join(lines)
    pieces = TerminalText().read(data, 5000)
    assert len(pieces) > len(data) // (2 * PIECE_BYTES)
    for piece in pieces:
        first = piece.text.split("\n")[0].encode()
        assert data[piece.offset - 5000 :].startswith(first + b"\r\n")
    assert "\n".join(piece.text for piece in pieces).split("\n") == [
        f"line number {number}" for number in range(1000)
    ]


def test_a_word_that_is_too_long_is_not_kept() -> None:
    assert texts(b"x" * (MAX_WORD_LENGTH + 1) + b" word\n") == ["word"]


@pytest.mark.parametrize(
    ("data", "end"),
    [
        (b"", 0),
        (b"half a line", 0),
        (b"a line\nand a half", 7),
        (b"\x1b[1;1H" + b"x" * MAX_HELD_BYTES, 0),  # an image may be incomplete
        (b"x" * MAX_HELD_BYTES + b"\x1b[1;1Hy", MAX_HELD_BYTES),
    ],
)
def test_an_incomplete_line_is_not_read_yet(data: bytes, end: int) -> None:
    assert complete_length(data) == end
