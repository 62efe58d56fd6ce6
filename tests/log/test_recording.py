"""What a worker said stays on disk: reading it takes little memory, and the oldest goes first."""

import os
import tempfile
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bullpen.keeper import spool
from bullpen.keeper.spool import INDEX_ENTRY, SpoolGone, SpoolWriter
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
    recording.watch(lambda: heard.append(("in no hurry", recording.read(0, 1000))))
    recording.watch(lambda: heard.append(("wants little", recording.read(6, 3))), first=True)
    recording.watch(lambda: heard.append(("comes last", recording.read(6, 1000))))
    recording.watch(lambda: heard.append(("waits for it", recording.read(6, 1000))), first=True)
    recording.grow(writer.append(b"before"))
    heard.clear()
    writer.append(b"some ")
    recording.grow(writer.append(b"more"))
    assert heard == [
        ("waits for it", b"some more"),
        ("wants little", b"som"),
        ("in no hurry", b"beforesome more"),
        ("comes last", b"some more"),
    ]
    writer.close()
    recording.close()


Deeds = list[int | tuple[int, int]]

SAYING = st.integers(1, 20)  # bytes
RESIZING = st.tuples(st.integers(1, 200), st.integers(1, 100))
LIFE = st.lists(st.one_of(SAYING, RESIZING), max_size=40)
BOUNDARY: Deeds = [16, (100, 30), (90, 20), 16, 8, (80, 24), (81, 25)]  # resized where a segment ends


@contextmanager
def recorded(deeds: Deeds, keep_from: int = 0) -> Iterator[Path]:
    """The spool of a terminal that said so many bytes, was resized, and so on; every deed is in its index."""
    with tempfile.TemporaryDirectory() as directory, pytest.MonkeyPatch.context() as patch:
        patch.setattr(spool, "ENTRY_INTERVAL_NS", 0)
        writer = SpoolWriter(os.open(directory, os.O_RDONLY), segment=16, size=(80, 24))
        for deed in deeds:
            if isinstance(deed, int):
                writer.append(bytes(deed))
            else:
                writer.resize(*deed)
        writer.drop_before(keep_from)
        writer.close()
        yield Path(directory)


def read_so_far() -> int:
    """Bytes this process has read from anything."""
    read: int = psutil.Process().io_counters().read_chars
    return read


def test_a_look_at_what_is_new_costs_the_same_however_long_the_index_is(tmp_path: Path) -> None:
    entries = b"".join(
        INDEX_ENTRY.pack(offset, offset, 80 if offset % 1000 == 0 else 0, 24) for offset in range(MIB)
    )
    (tmp_path / f"{0:020d}.idx").write_bytes(entries)
    (tmp_path / f"{0:020d}.bin").write_bytes(bytes(MIB))
    recording = Recording(tmp_path)
    before = read_so_far()
    assert [offset for offset, _, _ in recording.window_sizes(MIB - 2000)] == [1_047_000, 1_048_000]
    assert read_so_far() - before < len(entries) // 100


@given(deeds=LIFE, keep_from=st.integers(0, 200))
@example(deeds=BOUNDARY, keep_from=0)
@example(deeds=BOUNDARY, keep_from=20)
def test_from_any_offset_the_same_sizes_are_found_as_when_all_is_read(deeds: Deeds, keep_from: int) -> None:
    with recorded(deeds, keep_from) as path:
        recording = Recording(path)
        every = [(offset, cols, rows) for offset, _, cols, rows in recording.index() if cols]
        for after in range(recording.end + 3):
            assert list(recording.window_sizes(after)) == [each for each in every if each[0] >= after]


@pytest.mark.parametrize("wrong", [0, 1 << 40])
def test_an_entry_that_has_rotted_hides_no_other(tmp_path: Path, wrong: int) -> None:
    offsets = range(1, 41)
    (tmp_path / f"{0:020d}.bin").write_bytes(bytes(41))
    recording = Recording(tmp_path)
    for rotten in offsets[2:]:  # the first two have nothing to be compared with
        told = [wrong if offset == rotten else offset for offset in offsets]
        index = b"".join(INDEX_ENTRY.pack(at, time, 80, 24) for time, at in enumerate(told))
        (tmp_path / f"{0:020d}.idx").write_bytes(index)
        for after in offsets:
            found = [offset for offset, _, _ in recording.window_sizes(after) if offset != wrong]
            assert found == [offset for offset in offsets if offset >= after and offset != rotten]
