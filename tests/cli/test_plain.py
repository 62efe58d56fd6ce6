"""Terminal output as plain text, and its last lines."""

import pytest

from bullpen.cli.last_lines import LastLines
from bullpen.cli.terminal.plain import PlainTextConverter

COLOURED = b"\x1b[?2004h\x1b]0;title\x07\x1b[1;31mred\x1b[0m\x1b[K\r\nnext\x07\x08\r\n\x1b[6n"


def test_without_colours_only_text_remains() -> None:
    assert PlainTextConverter(colours=False).feed(COLOURED) == b"red\nnext\n"


def test_for_a_terminal_only_text_and_colours_remain() -> None:
    assert PlainTextConverter(colours=True).feed(COLOURED) == b"\x1b[1;31mred\x1b[0m\nnext\n"


def test_redundant_carriage_returns_are_removed_wherever_the_stream_is_cut() -> None:
    stream = b"a\r\n\rb\r\r\nc 10%\rc 20%\r\n"
    for size in range(1, len(stream)):
        plain = PlainTextConverter(colours=False)
        pieces = [stream[start : start + size] for start in range(0, len(stream), size)]
        assert b"".join(map(plain.feed, pieces)) == b"a\nb\nc 10%\rc 20%\n"


def test_text_of_any_language_remains() -> None:
    text = "größe 日本 👩‍👩‍👧 é\n".encode()
    assert PlainTextConverter(colours=False).feed(text) == text


def tail_of(lines: int | None, *pieces: bytes) -> bytes:
    tail = LastLines(lines)
    return b"".join(tail.feed(piece) for piece in pieces) + tail.finish()


@pytest.mark.parametrize(
    ("lines", "text", "last"),
    [
        (None, b"a\nb\nc\n", b"a\nb\nc\n"),
        (2, b"a\nb\nc\n", b"b\nc\n"),
        (2, b"a\nb\nc", b"b\nc"),
        (5, b"a\nb\n", b"a\nb\n"),
        (1, b"a\n\n", b"\n"),
        (0, b"a\nb\n", b""),
        (3, b"", b""),
    ],
)
def test_the_last_lines_do_not_depend_on_how_the_text_is_cut(
    lines: int | None, text: bytes, last: bytes
) -> None:
    assert tail_of(lines, text) == last
    assert tail_of(lines, *(bytes([byte]) for byte in text)) == last
