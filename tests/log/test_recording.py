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
