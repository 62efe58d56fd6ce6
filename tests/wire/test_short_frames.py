"""Short text frames are read without the WebSocket parser, and the bounds of frames are always known."""

import os
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from websockets.frames import Frame, Opcode

from bullpen.wire.short_frames import MAX_TEXT_BYTES, FrameBounds, short_text


def frame(data: bytes, opcode: Opcode = Opcode.TEXT, *, fin: bool = True, mask: bool = True) -> bytes:
    return Frame(opcode, data, fin=fin).serialize(mask=mask)


@pytest.mark.parametrize("text", ["", "a", '{"type":"input","data":"ü","n":1}', "x" * MAX_TEXT_BYTES])
def test_one_short_text_is_read(text: str) -> None:
    assert short_text(frame(text.encode())) == text.encode()


# Tests are named by these keys: frames have random masks, so their bytes differ in each process.
ODD = {
    "nothing": b"",
    "half a head": b"\x81",
    "a long one": frame(b"x" * (MAX_TEXT_BYTES + 1)),
    "binary": frame(b"binary", Opcode.BINARY),
    "a ping": frame(b"ping", Opcode.PING),
    "the first of several": frame(b"first of several", fin=False),
    "not masked": frame(b"not masked", mask=False),
    "two": frame(b"two") + frame(b"frames"),
    "cut": frame(b"cut")[:-1],
    "no UTF-8": frame(b"\xff is no text"),
}


@pytest.mark.parametrize("kind", ODD)
def test_every_other_frame_is_left_to_the_parser(kind: str) -> None:
    assert short_text(ODD[kind]) is None


@given(st.lists(st.integers(0, 70_000), max_size=4), st.lists(st.integers(1, 80_000), max_size=6))
def test_the_bounds_of_frames_do_not_depend_on_how_the_stream_is_split(
    sizes: list[int], cuts: list[int]
) -> None:
    stream, ends = b"", {0}
    for size in sizes:
        stream += frame(os.urandom(size), Opcode.BINARY)
        ends.add(len(stream))
    positions = sorted({0, len(stream), *(cut for cut in cuts if cut < len(stream))})
    bounds = FrameBounds()
    for start, end in pairwise(positions):
        bounds.advance(stream[start:end])
        if bounds.between_frames:
            assert end in ends


def test_a_frame_may_be_read_directly_only_between_complete_frames() -> None:
    bounds = FrameBounds()
    assert bounds.between_frames
    long = frame(bytes(70_000))
    bounds.advance(frame(b"a") + long[:100])
    assert not bounds.between_frames
    bounds.advance(long[100:])
    assert bounds.between_frames
    bounds.advance(frame(b"a") + b"\x81")
    assert not bounds.between_frames  # and never again, since the head of a frame was cut
    bounds.advance(frame(b"")[1:])
    assert not bounds.between_frames
