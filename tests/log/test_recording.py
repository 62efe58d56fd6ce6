"""What a worker said stays on disk: reading it takes little memory, and the oldest goes first."""

import os
import tracemalloc
from pathlib import Path

import pytest

from bullpen.keeper.spool import SpoolGone, SpoolWriter
from bullpen.log.recording import Recording

MIB = 1 << 20
PIECE = MIB // 2
SAID, KEPT = 16 * MIB, 8 * MIB


def test_r8_output_of_any_length_takes_less_than_a_megabyte_and_the_oldest_goes_first(
    tmp_path: Path,
) -> None:
    writer = SpoolWriter(os.open(tmp_path, os.O_RDONLY), segment=MIB, retention=KEPT)
    recording = Recording(tmp_path)
    line = b"%15d\n"
    tracemalloc.start()
    try:
        for start in range(0, SAID, PIECE):
            writer.append(b"".join(line % (offset // 16) for offset in range(start, start + PIECE, 16)))
            recording.grow(writer.flush())
            tracemalloc.reset_peak()
            assert len(recording.read(start, PIECE)) == PIECE  # as a viewer does
            held, peak = tracemalloc.get_traced_memory()
            assert (held < MIB, peak < MIB + PIECE) == (True, True)
    finally:
        tracemalloc.stop()
    assert recording.end == SAID
    assert SAID - KEPT <= recording.start <= SAID - KEPT + MIB
    assert recording.read(SAID - 16, 16) == line % (SAID // 16 - 1)
    with pytest.raises(SpoolGone):
        recording.read(0, 16)
    writer.close()
    recording.close()


def test_what_lies_in_several_segments_is_read_as_one(tmp_path: Path) -> None:
    writer = SpoolWriter(os.open(tmp_path, os.O_RDONLY), segment=4)
    recording = Recording(tmp_path)
    for word in (b"first ", b"second ", b"third"):
        writer.append(word)
    recording.grow(writer.end)
    assert recording.read(0, 100) == b"first second third"
    assert recording.read(2, 8) == b"rst seco"
    writer.close()
    recording.close()


def test_all_who_are_told_of_it_get_the_same_bytes(tmp_path: Path) -> None:
    writer = SpoolWriter(os.open(tmp_path, os.O_RDONLY), segment=8)
    recording = Recording(tmp_path)
    heard: list[tuple[str, bytes]] = []
    recording.watch(lambda: heard.append(("first to come", recording.read(0, 1000))))
    recording.watch(lambda: heard.append(("wants little", recording.read(6, 3))))
    recording.watch(lambda: heard.append(("last to come", recording.read(6, 1000))))
    recording.grow(writer.append(b"before"))
    heard.clear()
    writer.append(b"some ")
    recording.grow(writer.append(b"more"))
    assert heard == [
        ("last to come", b"some more"),
        ("wants little", b"som"),
        ("first to come", b"beforesome more"),
    ]
    writer.close()
    recording.close()
