"""The output of a worker stays on disk: reading takes little memory, and the oldest is deleted first."""

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
OUTPUT_BYTES, RETENTION_BYTES = 16 * MIB, 8 * MIB


def test_output_of_any_length_takes_less_than_a_megabyte_and_the_oldest_is_deleted_first(
    tmp_path: Path,
) -> None:
    writer = SpoolWriter(os.open(tmp_path, os.O_RDONLY), segment=MIB, retention=RETENTION_BYTES)
    recording = Recording(tmp_path)
    line = b"%15d\n"
    tracemalloc.start()
    try:
        for start in range(0, OUTPUT_BYTES, PIECE):
            writer.append(b"".join(line % (offset // 16) for offset in range(start, start + PIECE, 16)))
            recording.grow(writer.flush())
            tracemalloc.reset_peak()
            assert len(recording.read(start, PIECE)) == PIECE  # as a viewer does
            held, peak = tracemalloc.get_traced_memory()
            assert (held < MIB, peak < MIB + PIECE) == (True, True)
    finally:
        tracemalloc.stop()
    assert recording.end == OUTPUT_BYTES
    assert OUTPUT_BYTES - RETENTION_BYTES <= recording.start <= OUTPUT_BYTES - RETENTION_BYTES + MIB
    assert recording.read(OUTPUT_BYTES - 16, 16) == line % (OUTPUT_BYTES // 16 - 1)
    with pytest.raises(SpoolGone):
        recording.read(0, 16)
    writer.close()
    recording.close()


def test_output_in_several_segments_is_read_as_one(tmp_path: Path) -> None:
    writer = SpoolWriter(os.open(tmp_path, os.O_RDONLY), segment=4)
    recording = Recording(tmp_path)
    for word in (b"first ", b"second ", b"third"):
        writer.append(word)
    recording.grow(writer.end)
    assert recording.read(0, 100) == b"first second third"
    assert recording.read(2, 8) == b"rst seco"
    writer.close()
    recording.close()


def test_all_watchers_of_a_recording_read_the_same_bytes(tmp_path: Path) -> None:
    writer = SpoolWriter(os.open(tmp_path, os.O_RDONLY), segment=8)
    recording = Recording(tmp_path)
    reads: list[tuple[str, bytes]] = []
    recording.watch(lambda: reads.append(("reads all", recording.read(0, 1000))))
    recording.watch(lambda: reads.append(("reads little, first", recording.read(6, 3))), first=True)
    recording.watch(lambda: reads.append(("reads new", recording.read(6, 1000))))
    recording.watch(lambda: reads.append(("reads new, first", recording.read(6, 1000))), first=True)
    recording.grow(writer.append(b"before"))
    reads.clear()
    writer.append(b"some ")
    recording.grow(writer.append(b"more"))
    assert reads == [
        ("reads new, first", b"some more"),
        ("reads little, first", b"som"),
        ("reads all", b"beforesome more"),
        ("reads new", b"some more"),
    ]
    writer.close()
    recording.close()


Actions = list[int | tuple[int, int]]

APPEND = st.integers(1, 20)  # the size of an append in bytes
RESIZE = st.tuples(st.integers(1, 200), st.integers(1, 100))
ACTIONS = st.lists(st.one_of(APPEND, RESIZE), max_size=40)
BOUNDARY: Actions = [16, (100, 30), (90, 20), 16, 8, (80, 24), (81, 25)]  # resized at the end of a segment


@contextmanager
def recorded(actions: Actions, keep_from: int = 0) -> Iterator[Path]:
    """Write the spool of a terminal: a number appends bytes, a pair resizes. Each action is in its index."""
    with tempfile.TemporaryDirectory() as directory, pytest.MonkeyPatch.context() as patch:
        patch.setattr(spool, "ENTRY_INTERVAL_NS", 0)
        writer = SpoolWriter(os.open(directory, os.O_RDONLY), segment=16, size=(80, 24))
        for action in actions:
            if isinstance(action, int):
                writer.append(bytes(action))
            else:
                writer.resize(*action)
        writer.drop_before(keep_from)
        writer.close()
        yield Path(directory)


def total_bytes_read() -> int:
    """Return the number of bytes that this process has read."""
    read: int = psutil.Process().io_counters().read_chars
    return read


def test_reading_new_window_sizes_costs_the_same_with_a_long_index(tmp_path: Path) -> None:
    entries = b"".join(
        INDEX_ENTRY.pack(offset, offset, 80 if offset % 1000 == 0 else 0, 24) for offset in range(MIB)
    )
    (tmp_path / f"{0:020d}.idx").write_bytes(entries)
    (tmp_path / f"{0:020d}.bin").write_bytes(bytes(MIB))
    recording = Recording(tmp_path)
    before = total_bytes_read()
    assert [offset for offset, _, _ in recording.window_sizes(MIB - 2000)] == [1_047_000, 1_048_000]
    assert total_bytes_read() - before < len(entries) // 100


@given(actions=ACTIONS, keep_from=st.integers(0, 200))
@example(actions=BOUNDARY, keep_from=0)
@example(actions=BOUNDARY, keep_from=20)
def test_the_window_sizes_from_any_offset_equal_those_of_the_whole_index(
    actions: Actions, keep_from: int
) -> None:
    with recorded(actions, keep_from) as path:
        recording = Recording(path)
        every = [(offset, cols, rows) for offset, _, cols, rows in recording.index() if cols]
        for after in range(recording.end + 3):
            assert list(recording.window_sizes(after)) == [each for each in every if each[0] >= after]


@pytest.mark.parametrize("wrong", [0, 1 << 40])
def test_a_corrupt_index_entry_hides_no_other(tmp_path: Path, wrong: int) -> None:
    offsets = range(1, 41)
    (tmp_path / f"{0:020d}.bin").write_bytes(bytes(41))
    recording = Recording(tmp_path)
    for corrupt in offsets[2:]:  # the first two cannot be compared with earlier entries
        written = [wrong if offset == corrupt else offset for offset in offsets]
        index = b"".join(INDEX_ENTRY.pack(at, time, 80, 24) for time, at in enumerate(written))
        (tmp_path / f"{0:020d}.idx").write_bytes(index)
        for after in offsets:
            found = [offset for offset, _, _ in recording.window_sizes(after) if offset != wrong]
            assert found == [offset for offset in offsets if offset >= after and offset != corrupt]
