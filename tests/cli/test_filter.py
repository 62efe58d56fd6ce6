"""The filter of a program's output before it reaches the terminal of an attached viewer."""

import random

import pytest

from bullpen.cli.terminal.filter import OutputFilter

DRAWING = [
    b"plain text\r\n",
    "größe 日本 👩‍👩‍👧".encode(),
    b"\x1b[31;1mred\x1b[0m",
    b"\x1b[38;2;1;2;3mtrue colour\x1b[m",
    b"\x1b[2J\x1b[H\x1b[10;20H",
    b"\x1b[?1049h\x1b[?25l\x1b[?2004h",
    b"\x1b[>4;2m\x1b[>1u\x1b[<u\x1b[=5u",
    b"\x1b[4 q\x1b[1;24r",
    b"\x1b]0;a title?\x07\x1b]2;what;?\x1b\\",
    b"\x1b]8;;http://x/?q=?\x1b\\link\x1b]8;;\x1b\\",
    b"\x1b]11;#000000\x07",
    b"\x1bP0;1q#0;2;0;0;0~~\x1b\\",
    b"\x1b(0lqk\x1b(B\x1b7\x1b8\x1b=\x1b>\x1bM",
    b"\x1b[22;0t\x1b[23;0t",
    b"\x1b[>1n",
]
QUERIES = [
    b"\x1b[6n",
    b"\x1b[5n",
    b"\x1b[?6n",
    b"\x1b[?996n",
    b"\x1b[c",
    b"\x1b[0c",
    b"\x1b[>c",
    b"\x1b[>0c",
    b"\x1b[=c",
    b"\x1bZ",
    b"\x05",
    b"\x1b[?2026$p",
    b"\x1b[4$p",
    b"\x1bP$qm\x1b\\",
    b"\x1bP+q544e\x1b\\",
    b"\x1bP0$qr\x1b\\",
    b"\x1bPtmux;\x1b\x1b[c\x1b\\",
    b"\x1b]10;?\x07",
    b"\x1b]11;?\x1b\\",
    b"\x1b]4;1;?\x07",
    b"\x1b]21;foreground=?\x1b\\",
    b"\x1b]52;c;?\x07",
    b"\x1b]52;c;aGk=\x07",
    b"\x1b]1337;ReportCellSize\x07",
    b"\x1b[>q",
    b"\x1b[>0q",
    b"\x1b[?u",
    b"\x1b[14t",
    b"\x1b[18t",
    b"\x1b[21t",
    b"\x1b[8;50;200t",
    b"\x1b[x",
    b"\x1b[1;1;1;1;1;1*y",
    b"\x1b[?1;1;0S",
    b"\x1b_Gi=1,a=q;AAAA\x1b\\",
    b"\xc2\x9b6n",
    b"\xc2\x9bc",
    b"\xc2\x9d11;?\x07",
    b"\xc2\x90$qm\xc2\x9c",
    b"\x1b[\r6\nn",
]


def without_controls(data: bytes) -> bytes:
    return data.replace(b"\r", b"").replace(b"\n", b"")


@pytest.mark.parametrize("data", DRAWING)
def test_drawing_sequences_pass_unchanged(data: bytes) -> None:
    assert OutputFilter().feed(data) == data


@pytest.mark.parametrize("query", QUERIES)
def test_queries_are_removed(query: bytes) -> None:
    if query == b"\x1bPtmux;\x1b\x1b[c\x1b\\":
        assert b"\x1b[c" not in OutputFilter().feed(query)
    else:
        assert OutputFilter().feed(b"before" + query + b"after") == b"beforeafter"


@pytest.mark.parametrize("final", [b"b", b"S", b"T", b"L", b"M", b"I", b"Z"])
def test_huge_counts_are_clamped(final: bytes) -> None:
    assert OutputFilter().feed(b"\x1b[2147483647" + final) == b"\x1b[9999" + final


def test_the_output_does_not_depend_on_how_the_stream_is_cut() -> None:
    generator = random.Random(7)
    stream = b"".join(generator.choices(DRAWING + QUERIES, k=400))
    whole = OutputFilter().feed(stream)
    for _ in range(20):
        filter_, output, rest = OutputFilter(), b"", stream
        while rest:
            size = generator.randint(1, 40)
            output += filter_.feed(rest[:size])
            rest = rest[size:]
        assert output == whole


def test_half_a_sequence_waits_for_its_other_half() -> None:
    filter_ = OutputFilter()
    assert filter_.feed(b"a\x1b[6") == b"a"
    assert filter_.feed(b"n") == b""
    assert filter_.feed(b"\x1b[3") == b""
    assert filter_.feed(b"1mb") == b"\x1b[31mb"


def test_an_endless_string_is_not_held_back_forever() -> None:
    filter_ = OutputFilter()
    output = filter_.feed(b"\x1b]0;")
    for _ in range(40):
        output += filter_.feed(b"x" * 50_000)
    assert len(output) > 500_000


def test_an_aborted_sequence_holds_no_output_back() -> None:
    assert OutputFilter().feed(b"\x1b]0;tit\x18le") == b"\x1b]0;tit\x18le"
    assert OutputFilter().feed(b"\x1b[3\x1b[31mx") == b"\x1b[3\x1b[31mx"


@pytest.mark.parametrize(
    ("changes", "reset"),
    [
        (b"\x1b[?1049h", b"\x1b[?1049l"),
        (b"\x1b[?1000;1006h", b"\x1b[?1006l\x1b[?1000l"),
        (b"\x1b[?25l", b"\x1b[?25h"),
        (b"\x1b[>1u", b"\x1b[<99u"),
        (b"\x1b[2 q", b"\x1b[0 q"),
        (b"\x1b]11;red\x07", b"\x1b]111\x07"),
    ],
)
def test_modes_that_a_program_changed_are_restored(changes: bytes, reset: bytes) -> None:
    filter_ = OutputFilter()
    filter_.feed(changes)
    assert reset in filter_.restore()
    assert reset not in filter_.restore()


def test_modes_that_a_program_reset_itself_are_not_restored() -> None:
    filter_ = OutputFilter()
    filter_.feed(b"\x1b[?1049h\x1b[?25l\x1b[?25h\x1b[?1049l")
    assert b"\x1b[?" not in filter_.restore()
    filter_.feed(b"\x1b[?1000h\x1bc")
    assert b"\x1b[?" not in filter_.restore()


def test_the_filter_knows_whether_the_alternate_screen_is_shown() -> None:
    filter_ = OutputFilter()
    filter_.feed(b"\x1b[?1049h")
    assert filter_.modes.alternate
    filter_.feed(b"\x1b[?1049l")
    assert not filter_.modes.alternate


def test_titles_of_the_program_can_be_held_back() -> None:
    filter = OutputFilter()
    assert filter.feed(b"\x1b]0;one\x07") == filter.title == b"\x1b]0;one\x07"
    filter.holds_titles = True
    assert filter.feed(b"a\x1b]2;two\x1b\\b\x1b]1;icon\x07") == b"ab\x1b]1;icon\x07"
    assert filter.title == b"\x1b]2;two\x1b\\"
