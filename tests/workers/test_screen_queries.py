"""Detection of queries in output: none is missed, and output without queries is recognised quickly."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bullpen.workers.ghostty import EmulatedTerminal
from bullpen.workers.screen_queries import (
    LONG_BYTES,
    LOOK_BACK_BYTES,
    _has_query,
    _is_harmless,
    may_contain_query,
)

QUERIES = [
    *(b"\x1b[5n", b"\x1b[6n", b"\x1b[?6n", b"\x1b[?996n", b"\x1b[6\nn"),  # DSR, also with a control inside
    *(b"\x1b[c", b"\x1b[0c", b"\x1b[>c", b"\x1b[=c", b"\x1bZ"),  # DA
    *(
        b"\x1b[?2004$p",
        b"\x1b[4$p",
        b"\x1bP$qm\x1b\\",
        b"\x1bP$qr\x1b\\",
        b"\x1bP$q q\x18",
    ),  # DECRQM, DECRQSS
    *(b"\x1b[>q", b"\x1b[>0q", b"\x1bP+q544e\x1b\\", b"\x1bP+q" + b"544e;" * 100 + b"524742\x1b\\"),
    *(b"\x1b]10;?\x07", b"\x1b]11;?\x1b\\", b"\x1b]12;?\x18", b"\x1b]4;1;?\x07", b"\x1b]21;foreground=?\x07"),
    b"\x1b]4;" + b"1;?;" * 200 + b"2;?\x07",
    *(b"\x1b[?u", b"\x1b_Gi=31,s=1,v=1,a=q,t=d,f=24;AAAA\x1b\\", b"\x1b[14t", b"\x1b[16t", b"\x1b[18t"),
    *(b"\x05", b"\x1b[?2048h", b"\x1b[?25;2048h", b"\x1b[?2048;25h", b"\x1b]5522;type=read;Lg==\x1b\\"),
    *(b"\x1b]2;x\x1b[6n", b"\x1b[1\x1b[c", b"\x1b]11;?\x1bZ"),  # a query that interrupts another sequence
]
OTHER_OUTPUT = [
    *(b"text", b"\r\n", b"\x07", b"\x1b[31m", b"\x1b[0m", b"\x1b[K", b"\x1b[2J", b"\x1b[3;5H", b"\x1b[?25l"),
    *(
        b"\x1b[?2004h",
        b"\x1b]2;title\x07",
        b"\x1b]8;;http://a/?b\x1b\\",
        b"\x1bPq#0\x1b\\",
        b"\x1b(B",
        b"\x1b7",
    ),
    *(
        b"\x1b[>4;2m",
        b"\x1b[>1u",
        b"\x1b[22;2t",
        b"\x1b",
        b"\x1b[",
        b"\x1b]",
        b"\x1bP",
        b"\x18",
        "é".encode(),
    ),
]
DRAWING = [
    *(
        b"\x1b[31m",
        b"\x1b[m",
        b"\x1b[38;5;17m",
        b"\x1b[4:3m",
        b"\x1b[K",
        b"\x1b[2J",
        b"\x1b[3;5H",
        b"\x1b[2A",
    ),
    *(b"\x1b[?25l", b"\x1b[?1049h", b"\x1b(B"),
    *(b"text and more", b"0;1:2?", b"[c", b"\r\n", "é".encode()),
]


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: repr(query[:12]))
def test_a_query_is_detected_wherever_it_is_cut(query: bytes) -> None:
    assert may_contain_query(b"", query)
    assert may_contain_query(b"", b"text" + query + b"text")
    for cut in range(1, len(query)):
        tail = query[max(0, cut - LOOK_BACK_BYTES) : cut]
        assert may_contain_query(b"", query[:cut]) or may_contain_query(tail, query[cut:])


@settings(max_examples=400, deadline=None)
@given(
    tokens=st.lists(
        st.one_of(st.sampled_from(QUERIES), st.sampled_from(OTHER_OUTPUT)), min_size=1, max_size=15
    ),
    lengths=st.lists(st.sampled_from([1, 2, 3, 5, 8, 20, 100, 1000]), min_size=1),
)
def test_all_output_that_the_emulator_answers_is_detected_as_a_query(
    tokens: list[bytes], lengths: list[int]
) -> None:
    data, tail, terminal = b"".join(tokens), b"", EmulatedTerminal(20, 5)
    while data:
        chunk, data = data[: lengths[0]], data[lengths[0] :]
        if terminal.feed(chunk):
            assert may_contain_query(tail, chunk)
        tail = (tail + chunk)[-LOOK_BACK_BYTES:]
        lengths = lengths[1:] + lengths[:1]


@settings(max_examples=400, deadline=None)
@given(
    tail=st.sampled_from([b"", b"text", b"\x1b[3", b"\x1b]11;", b"\x1b[?2"]),
    before=st.lists(st.sampled_from(QUERIES + OTHER_OUTPUT + DRAWING), max_size=4),
    drawing=st.lists(st.sampled_from(DRAWING), min_size=1, max_size=6),
    after=st.lists(st.sampled_from(QUERIES + OTHER_OUTPUT + DRAWING), max_size=4),
)
def test_the_fast_check_of_a_flood_equals_the_exact_check(
    tail: bytes, before: list[bytes], drawing: list[bytes], after: list[bytes]
) -> None:
    flood = b"".join(drawing)
    chunk = b"".join([*before, flood * (LONG_BYTES // len(flood) + 1), *after])
    exact = b"\x05" in chunk or chunk.endswith(b"\x1b") or _has_query(tail + chunk, len(tail))
    assert may_contain_query(tail, chunk) == exact


@pytest.mark.parametrize("drawing", DRAWING, ids=repr)
def test_a_flood_that_only_draws_passes_the_fast_check(drawing: bytes) -> None:
    assert _is_harmless(drawing * LONG_BYTES)
    assert not may_contain_query(b"", drawing * LONG_BYTES)


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: repr(query[:12]))
def test_no_query_passes_the_fast_check(query: bytes) -> None:
    assert b"\x1b" not in query or not _is_harmless(b"\x1b[31m" + query + b"\x1b[0m")


@pytest.mark.parametrize(
    "output",
    [
        b"plain text\r\n" * 100,
        b"\x1b[1;31mred\x1b[0m\x1b[K\r\n" * 100,
        b"\x1b[H\x1b[2J\x1b[?25l\x1b[3;5Hx\x1b[?25h\x1b(B\x1b[m\x1b7\x1b8\x1b[2 q",
        b"\x1b]0;user@host: ~\x07$ \x1b[?2004h",
        b"\x1b]8;;http://a/b\x1b\\link\x1b]8;;\x1b\\",
        "grüße 日本".encode(),
    ],
)
def test_text_colours_and_titles_are_not_queries(output: bytes) -> None:
    assert not may_contain_query(b"", output)
    assert not may_contain_query(output[-LOOK_BACK_BYTES:], output)


def test_a_query_is_detected_once() -> None:
    assert may_contain_query(b"", b"\x1b[6n")
    assert not may_contain_query(b"\x1b[6n", b"text")
    assert not may_contain_query(b"\x1b]11;?\x07", b"text")


@pytest.mark.parametrize(
    "hostile",
    [
        b"\x1b[" + b"$" * (1 << 20),
        b"\x1b]" * (1 << 19),
        b"\x1b[?2048" * (1 << 17),
        b"\x1bP" + b"?" * (1 << 20),
    ],
)
def test_hostile_output_is_checked_quickly(hostile: bytes) -> None:
    start = time.process_time()
    may_contain_query(b"", hostile)
    assert time.process_time() - start < 2
