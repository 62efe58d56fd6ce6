"""The emulator: its replies to queries, its encoding, and its rows and cells."""

import subprocess
import sys

import pytest

from bullpen.workers.ghostty import CONTINUATION_MAX_BYTES, EmulatedTerminal, GhosttyError
from bullpen.workers.ghostty_grid import Row, Span


def terminal(data: bytes = b"", cols: int = 20, rows: int = 5) -> EmulatedTerminal:
    emulated = EmulatedTerminal(cols, rows)
    emulated.feed(data)
    return emulated


@pytest.mark.parametrize(
    ("query", "reply"),
    [
        (b"\x1b[5n", b"\x1b[0n"),
        (b"ab\x1b[6n", b"\x1b[1;3R"),
        (b"\x1b[?2004$p", b"\x1b[?2004;2$y"),
        (b"\x1b[18t", b"\x1b[8;5;20t"),
        (b"\x1b]11;?\x07", b"\x1b]11;rgb:1414/1414/1818\x07"),
        (b"\x1b[?996n", b"\x1b[?997;1n"),
        (b"\x1bP$qr\x1b\\", b"\x1bP1$r1;5r\x1b\\"),
        (b"\x1b[?u", b"\x1b[?0u"),
    ],
)
def test_a_query_has_one_reply(query: bytes, reply: bytes) -> None:
    assert EmulatedTerminal(20, 5).feed(query) == [reply]
    assert EmulatedTerminal(20, 5).clone().feed(query) == [reply]


@pytest.mark.parametrize(
    "query",
    [
        b"\x1b_Gi=31,s=1,v=1,a=q,t=d,f=24;AAAA\x1b\\",  # images
        b"\x1b]2;evil\rcommand\x07\x1b[21t",  # the title, typed into the program
        b"\x1b]52;c;?\x07",  # the clipboard
    ],
)
def test_queries_for_images_the_title_and_the_clipboard_have_no_reply(query: bytes) -> None:
    assert EmulatedTerminal(20, 5).feed(query) == []
    assert EmulatedTerminal(20, 5).clone().feed(query) == []


def test_replies_do_not_depend_on_how_the_bytes_are_cut() -> None:
    data = b"\x1b[6nab\x1b[c\x1b]4;1;?;2;?\x07\r\n\x1b[6n"
    whole = EmulatedTerminal(20, 5).feed(data)
    one_by_one = EmulatedTerminal(20, 5)
    assert [reply for i in range(len(data)) for reply in one_by_one.feed(data[i : i + 1])] == whole


def test_a_program_that_enabled_resize_reports_gets_them() -> None:
    screen = terminal(b"\x1b[?2048h")
    assert screen.resize(30, 6) == [b"\x1b[48;6;30;96;240t"]
    assert (screen.cols, screen.rows) == (30, 6)


@pytest.mark.parametrize(
    "half", [b"\x1b[3", b"\x1b]2;tit", b"\x1bP$q", "é".encode()[:1], b"\x1b_Gx", b"\x1b"]
)
def test_a_clone_continues_in_the_middle_of_a_sequence(half: bytes) -> None:
    original = terminal(b"text" + half)
    clone = original.clone()
    assert clone.continuation() == half
    for rest in (b"1mred\x07", b"\x1b\\", b"\xa9 end"):
        assert clone.feed(rest) == original.feed(rest)
    assert clone.encode() == original.encode()


def test_an_endless_sequence_cannot_be_encoded_until_it_ends() -> None:
    screen = terminal(b"kept\x1b]2;")
    screen.feed(b"x" * (CONTINUATION_MAX_BYTES + 1))
    assert screen.continuation() is None
    with pytest.raises(GhosttyError):
        screen.encode()
    screen.feed(b"\x07")
    assert screen.clone().text() == "kept"


def test_invalid_data_is_not_decoded() -> None:
    encoded = terminal(b"hello").encode()
    for invalid in (b"", b"junk" * 100, encoded[:-10], encoded[: len(encoded) // 2]):
        with pytest.raises(GhosttyError):
            EmulatedTerminal.decode(invalid)


def test_text_is_the_visible_screen_and_contents_include_the_scrollback() -> None:
    screen = terminal(b"\r\n".join(b"line %d" % i for i in range(8)))
    assert screen.text().split("\n") == [f"line {i}" for i in range(3, 8)]
    assert screen.contents().split("\n") == [f"line {i}" for i in range(8)]
    assert screen.scrollback_rows == 3


def test_the_scrollback_keeps_two_to_four_thousand_rows() -> None:
    screen = EmulatedTerminal(80, 24)
    screen.feed(b"a line\r\n" * 10_000)
    assert 2000 < screen.scrollback_rows < 4000


def test_the_grid_describes_wraps_links_and_colours_of_rows() -> None:
    link = b"\x1b]8;;http://a/b\x1b\\link\x1b]8;;\x1b\\"
    screen = terminal(b"x" * 25 + b"\r\nsome " + link + b"\r\n\x1b[44m\x1b[K\x1b[0m")
    grid = screen.grid
    assert [grid.row(y) for y in range(3)] == [Row(True, False), Row(False, False), Row(False, True)]
    assert grid.links(2) == [Span(5, 9, b"http://a/b")]
    assert grid.backgrounds(3) == [Span(0, 20, b"48;5;4")]
    assert grid.backgrounds(4) == []
    assert grid.has_coloured_end(3)
    assert not grid.has_coloured_end(4)


def test_extras_contain_only_the_requested_state() -> None:
    screen = terminal(b"\x1b[Hx\x1b[?2004h\x1b[2;4r\x1b[3;2H")
    assert screen.extras("modes") == b"\x1b[?2004h"
    assert screen.extras("scrolling_region") == b"\x1b[2;4r"
    assert screen.extras("cursor") == b"\x1b[3;2H"
    assert screen.extras("tabstops") == b"\x1b[3g\x1b[9G\x1bH\x1b[17G\x1bH\x1b[H"


def test_the_emulator_library_is_loaded_with_the_first_terminal() -> None:
    code = """
import sys
from pathlib import Path
from bullpen.workers.screen import Screen, may_contain_query
from bullpen.workers.screen_guard import ScreenGuard
assert may_contain_query(b"", b"\\x1b[6n")
assert "pyghostty" not in sys.modules and "cffi" not in sys.modules
from bullpen.workers.ghostty import EmulatedTerminal
EmulatedTerminal(80, 24)
assert "pyghostty" in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)
