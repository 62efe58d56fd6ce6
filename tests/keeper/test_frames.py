"""Frames: any values are decoded as they were encoded, however the bytes are cut."""

import json
import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bullpen.keeper.frames import MAX_FRAME_BYTES, PREFIX, BadFrame, FrameDecoder, Tag, encode

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
frames = st.tuples(
    st.integers(0, 255), st.dictionaries(st.text(), values, max_size=4), st.binary(max_size=300)
)


@given(sent=st.lists(frames, max_size=6), cuts=st.lists(st.integers(1, 40), min_size=1, max_size=40))
def test_frames_are_decoded_however_the_bytes_are_cut(
    sent: list[tuple[int, dict[str, object], bytes]], cuts: list[int]
) -> None:
    data = b"".join(encode(*frame) for frame in sent)
    decoder, received, position, round_ = FrameDecoder(), [], 0, 0
    while position < len(data):
        step = cuts[round_ % len(cuts)]
        received += list(decoder.feed(data[position : position + step]))
        position, round_ = position + step, round_ + 1
    assert received == sent


def test_an_incomplete_frame_is_not_returned() -> None:
    decoder = FrameDecoder()
    whole = encode(Tag.WRITE, {"n": 1}, b"body")
    assert list(decoder.feed(whole[:-1])) == []
    assert list(decoder.feed(whole[-1:])) == [(Tag.WRITE, {"n": 1}, b"body")]


def test_the_first_frame_is_returned_before_the_next_one_is_decoded() -> None:
    invalid = encode(Tag.NOTICE, {})[:-2] + b"]]"
    frames = FrameDecoder().feed(encode(Tag.WRITE, {"n": 1}, b"body") + invalid)
    assert next(frames) == (Tag.WRITE, {"n": 1}, b"body")
    with pytest.raises(BadFrame):
        next(frames)


def test_a_long_frame_in_many_pieces_is_joined_once(monkeypatch: pytest.MonkeyPatch) -> None:
    unpacked = 0

    class Counting(struct.Struct):
        def unpack_from(self, *arguments: Any) -> tuple[Any, ...]:
            nonlocal unpacked
            unpacked += 1
            return super().unpack_from(*arguments)

    monkeypatch.setattr("bullpen.keeper.frames.PREFIX", Counting(PREFIX.format))
    whole, decoder = encode(Tag.WRITE, {}, bytes(1 << 20)), FrameDecoder()
    pieces = [whole[start : start + 4096] for start in range(0, len(whole), 4096)]
    frames = [frame for piece in pieces for frame in decoder.feed(piece)]
    assert frames == [(Tag.WRITE, {}, bytes(1 << 20))]
    assert unpacked == 2  # with its first piece and with its last


def test_a_header_may_contain_text_that_is_not_utf8() -> None:
    name = b"caf\xe9".decode(errors="surrogateescape")
    assert list(FrameDecoder().feed(encode(Tag.SPAWN, {"argv": [name]}))) == [
        (Tag.SPAWN, {"argv": [name]}, b"")
    ]


def test_a_frame_longer_than_allowed_is_not_encoded() -> None:
    with pytest.raises(ValueError, match="longer than"):
        encode(Tag.WRITE, {}, bytes(MAX_FRAME_BYTES))


@pytest.mark.parametrize(
    "data",
    [
        PREFIX.pack(MAX_FRAME_BYTES + 1, 1, 2),
        PREFIX.pack(7, 1, 3) + b"{}",
        PREFIX.pack(7, 1, 2) + b"[]",
        PREFIX.pack(7, 1, 2) + b"{]",
        PREFIX.pack(7, 1, 2) + b"\xff\xff",
        PREFIX.pack(2, 1, 2) + b"{}",
        PREFIX.pack(5 + 200_000, 1, 200_000) + b"[" * 200_000,
    ],
    ids=["too long", "header beyond the frame", "no object", "no JSON", "no UTF-8", "too short", "too deep"],
)
def test_nonsense_is_refused(data: bytes) -> None:
    with pytest.raises(BadFrame):
        list(FrameDecoder().feed(data))


def test_the_layout_of_frames_is_as_documented() -> None:
    """Running keepers may be older than the server: if this test fails, the change is wrong."""
    frame = encode(3, {"worker": "w", "n": 7}, b"hi")
    header = b'{"worker":"w","n":7}'
    assert (
        frame
        == (5 + len(header) + 2).to_bytes(4, "big")
        + b"\x03"
        + len(header).to_bytes(4, "big")
        + header
        + b"hi"
    )
    assert json.loads(header) == {"worker": "w", "n": 7}
    assert {tag.name: tag.value for tag in Tag} == {
        "HELLO": 1,
        "SPAWN": 2,
        "WRITE": 3,
        "RESIZE": 4,
        "SIGNAL": 5,
        "CLOSE_INPUT": 6,
        "STATUS": 7,
        "CONSUMED": 8,
        "ACK_EXIT": 9,
        "FORGET": 10,
        "SEEN": 11,
        "REPLY": 128,
        "FAULT": 129,
        "NOTICE": 130,
        "EXIT": 131,
    }


def test_every_frame_is_in_the_manual() -> None:
    manual = (Path(__file__).parents[2] / "docs/keeper.md").read_text()
    assert [tag.name for tag in Tag if f"| {tag.value} | {tag.name} |" not in manual] == []
