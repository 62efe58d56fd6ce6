"""The spool: absolute offsets, deletion of whole segments, and no loss or repetition on a full disk."""

import errno
import os
import resource
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path

import pytest

from bullpen.keeper.directories import open_directory, remove_tree
from bullpen.keeper.spool import INDEX_ENTRY, NO_LIMIT, SpoolGone, SpoolReader, SpoolWriter


def open_fd(path: Path) -> int:
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY)


def open_writer(
    path: Path, segment: int = 100, retention: int = NO_LIMIT, size: tuple[int, int] = (0, 0)
) -> SpoolWriter:
    return SpoolWriter(open_fd(path), segment=segment, retention=retention, size=size)


def numbered(start: int, count: int) -> bytes:
    """Return bytes of a pattern that depends on their offset."""
    return b"".join(b"%08d" % i for i in range(start // 8, start // 8 + count // 8 + 2))[start % 8 :][:count]


def read_all(reader: SpoolReader, offset: int, limit: int = 37) -> bytes:
    data = b""
    while piece := reader.read(offset + len(data), limit):
        data += piece
    return data


def test_written_bytes_are_read_by_their_absolute_offset(tmp_path: Path) -> None:
    writer, reader = open_writer(tmp_path), SpoolReader(tmp_path)
    for start in range(0, 1000, 40):
        assert writer.append(numbered(start, 40)) == start + 40
    assert (writer.start, writer.end) == (0, 1000)
    assert (reader.start, reader.end) == (0, 1000)
    assert read_all(reader, 0) == numbered(0, 1000)
    assert read_all(reader, 777) == numbered(777, 223)
    assert reader.read(3, 5) == numbered(3, 5)
    assert reader.read(1000, 10) == b""
    assert reader.read(5000, 10) == b""


def test_segments_are_named_by_their_first_offset(tmp_path: Path) -> None:
    writer = open_writer(tmp_path)
    for _ in range(5):
        writer.append(bytes(60))
    assert sorted(path.name for path in tmp_path.glob("*.bin")) == [
        f"{start:020d}.bin" for start in (0, 120, 240)
    ]
    assert sorted(path.stem for path in tmp_path.glob("*.idx")) == [
        f"{start:020d}" for start in (0, 120, 240)
    ]


def test_a_reader_at_the_end_reads_later_bytes_of_this_segment_and_the_next(tmp_path: Path) -> None:
    writer, reader = open_writer(tmp_path), SpoolReader(tmp_path)
    assert reader.read(0, 10) == b""
    writer.append(bytes(100))
    assert len(read_all(reader, 0)) == 100
    assert reader.read(100, 10) == b""
    writer.append(b"next")
    assert reader.read(100, 10) == b"next"
    writer.append(b"more")
    assert reader.read(104, 10) == b"more"


def test_the_oldest_segments_are_deleted_beyond_the_retention(tmp_path: Path) -> None:
    writer, reader = open_writer(tmp_path, retention=300), SpoolReader(tmp_path)
    for start in range(0, 2000, 50):
        writer.append(numbered(start, 50))
    assert 200 <= writer.end - writer.start <= 300
    assert reader.start == writer.start
    assert read_all(reader, writer.start) == numbered(writer.start, 2000 - writer.start)
    with pytest.raises(SpoolGone):
        reader.read(writer.start - 1, 10)


def test_a_reader_that_is_overtaken_by_the_retention_gets_an_error(tmp_path: Path) -> None:
    writer, reader = open_writer(tmp_path, retention=100), SpoolReader(tmp_path)
    writer.append(numbered(0, 100))
    assert reader.read(0, 50) == numbered(0, 50)
    for start in range(100, 1000, 100):
        writer.append(numbered(start, 100))
    assert reader.read(50, 50) == numbered(50, 50), "the open segment cannot be read"
    with pytest.raises(SpoolGone):
        reader.read(100, 50)


def test_consumed_bytes_are_deleted_in_whole_segments(tmp_path: Path) -> None:
    writer, reader = open_writer(tmp_path), SpoolReader(tmp_path)
    for start in range(0, 350, 50):
        writer.append(numbered(start, 50))
    writer.drop_before(199)
    assert reader.start == 100
    writer.drop_before(10)
    assert reader.start == 100
    writer.drop_before(350)
    assert reader.start == 300, "the open segment was deleted"
    for start in range(350, 450, 50):
        writer.append(numbered(start, 50))
    assert reader.start == 300
    assert read_all(reader, 300) == numbered(300, 150)


def test_an_open_segment_that_was_consumed_is_deleted_when_the_next_starts(tmp_path: Path) -> None:
    writer = open_writer(tmp_path)
    writer.append(bytes(100))
    writer.drop_before(10**9)
    assert writer.consumed == 100, "an offset beyond the end was consumed"
    writer.append(bytes(1))
    assert SpoolReader(tmp_path).start == 100


def test_reading_a_removed_spool_raises_an_error(tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    spool.mkdir()
    open_writer(spool).append(b"x")
    reader = SpoolReader(spool)
    remove_tree("spool", open_fd(tmp_path))
    for access in (
        lambda: reader.read(0, 1),
        lambda: reader.start,
        lambda: reader.end,
        lambda: list(reader.index()),
    ):
        with pytest.raises(SpoolGone):
            access()


def test_the_index_has_the_times_of_bytes_and_the_window_sizes(tmp_path: Path) -> None:
    writer, reader = open_writer(tmp_path, size=(80, 24)), SpoolReader(tmp_path)
    writer.append(bytes(10))
    writer.resize(100, 30)
    writer.append(bytes(95))
    writer.resize(120, 40)
    writer.append(bytes(1))
    sizes = [(offset, cols, rows) for offset, _, cols, rows in reader.index() if cols]
    assert sizes == [(0, 80, 24), (10, 100, 30), (105, 120, 40), (105, 120, 40)], (
        "each segment must begin with its size"
    )
    times = [time for _, time, _, _ in reader.index()]
    assert times == sorted(times)


def test_the_index_from_an_offset_begins_with_the_entry_for_it(tmp_path: Path) -> None:
    writer, reader = open_writer(tmp_path, segment=1000, size=(80, 24)), SpoolReader(tmp_path)
    writer.append(bytes(10))
    writer.resize(100, 30)
    writer.append(bytes(10))
    writer.resize(120, 40)
    writer.append(bytes(10))
    assert [entry[2:] for entry in reader.index(5)] == [(80, 24), (100, 30), (120, 40)]
    assert [(entry[0], *entry[2:]) for entry in reader.index(15)] == [(10, 100, 30), (20, 120, 40)]
    assert [(entry[0], *entry[2:]) for entry in reader.index(25)] == [(20, 120, 40)]


def test_the_offset_of_any_time_is_found_in_any_segment(tmp_path: Path) -> None:
    entries = [(10 * number, 1000 + 7 * number, 0, 0) for number in range(40)]
    for start in range(0, 400, 50):
        own = [INDEX_ENTRY.pack(*entry) for entry in entries if start <= entry[0] < start + 50]
        (tmp_path / f"{start:020d}.idx").write_bytes(b"".join(own))
        (tmp_path / f"{start:020d}.bin").write_bytes(bytes(50))
    reader = SpoolReader(tmp_path)
    for time in range(990, 1300):
        expected = next((offset for offset, at, _, _ in entries if at >= time), None)
        assert reader.offset_at(time) == expected


def test_only_the_index_entries_near_and_after_an_offset_are_read(tmp_path: Path) -> None:
    count = 100_000
    for start in (0, count):
        entries = b"".join(
            INDEX_ENTRY.pack(start + number, start + number, 80, 24) for number in range(count)
        )
        (tmp_path / f"{start:020d}.idx").write_bytes(entries)
        (tmp_path / f"{start:020d}.bin").write_bytes(bytes(count))
    reader = SpoolReader(tmp_path)
    for offset, first in ((1, 0), (count - 5, count - 6), (count, count - 1), (2 * count, 2 * count - 1)):
        near = reader.index_near(offset)
        assert next(near)[0] == first
        assert sum(1 for _ in near) == 2 * count - 1 - first


def test_an_incomplete_entry_at_the_end_of_the_index_is_not_read(tmp_path: Path) -> None:
    writer, reader = open_writer(tmp_path, size=(80, 24)), SpoolReader(tmp_path)
    writer.append(b"x")
    whole = list(reader.index())
    with next(tmp_path.glob("*.idx")).open("ab") as index:
        index.write(INDEX_ENTRY.pack(1, 2, 3, 4)[:-1])
    assert list(reader.index()) == whole


def test_time_entries_come_at_most_every_ten_milliseconds(tmp_path: Path) -> None:
    writer, reader = open_writer(tmp_path, segment=1 << 20), SpoolReader(tmp_path)
    for _ in range(20_000):
        writer.append(b"x")
    times = [time for _, time, _, _ in reader.index()]
    assert all(later - earlier >= 10_000_000 for earlier, later in pairwise(times))


def test_threads_can_read_a_spool_while_it_is_written(tmp_path: Path) -> None:
    writer, reader = open_writer(tmp_path, segment=1000), SpoolReader(tmp_path)
    total, wrong = 200_000, []

    def follow(first: int) -> None:
        offset = first
        while offset < total:
            piece = reader.read(offset, 333)
            if piece != numbered(offset, len(piece)):
                wrong.append(offset)
            offset += len(piece)

    threads = [threading.Thread(target=follow, args=(first,)) for first in (0, 0, 5000)]
    writer.append(numbered(0, 6000))
    for thread in threads:
        thread.start()
    for start in range(6000, total, 100):
        writer.append(numbered(start, 100))
    for thread in threads:
        thread.join()
    assert wrong == []
    before = len(os.listdir("/proc/self/fd"))
    reader.close()
    assert len(os.listdir("/proc/self/fd")) == before - 1, "a reader must have one descriptor"


@contextmanager
def file_size_limit(size: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("limit", [0, 1, 19, 20, 21, 39, 50, 99])
def test_a_refused_write_continues_where_it_stopped(tmp_path: Path, limit: int) -> None:
    writer, reader = open_writer(tmp_path), SpoolReader(tmp_path)
    writer.append(numbered(0, 30))
    with file_size_limit(limit):
        with pytest.raises(OSError, match=r"large|room"):
            for start in range(30, 1000, 30):
                writer.append(numbered(start, 30))
        stopped = writer.end
        for _ in range(3):
            with pytest.raises(OSError, match=r"large|room"):
                writer.flush()
        assert writer.end == stopped
        assert read_all(reader, 0) == numbered(0, stopped)
    end = writer.end + len(writer.unwritten)
    assert writer.flush() == end
    assert writer.unwritten == b""
    writer.append(numbered(end, 500))
    assert read_all(reader, 0) == numbered(0, end + 500)
    for index in tmp_path.glob("*.idx"):
        assert index.stat().st_size % INDEX_ENTRY.size == 0


def test_a_window_size_that_could_not_be_written_is_written_later(tmp_path: Path) -> None:
    writer, reader = open_writer(tmp_path, size=(80, 24)), SpoolReader(tmp_path)
    with file_size_limit(INDEX_ENTRY.size + 3):
        writer.resize(100, 30)
    writer.append(b"x")
    writer.write_index()
    assert [(offset, *size) for offset, _, *size in reader.index() if any(size)] == [(0, 100, 30)]
    assert next(tmp_path.glob("*.idx")).stat().st_size % INDEX_ENTRY.size == 0


def test_a_spool_that_cannot_be_created_leaves_no_file(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    with file_size_limit(3), pytest.raises(OSError, match="room"):
        open_writer(tmp_path)
    assert list(tmp_path.iterdir()) == []
    assert len(os.listdir("/proc/self/fd")) == before


def test_planted_symlinks_are_not_followed(tmp_path: Path) -> None:
    target, home = tmp_path / "target", tmp_path / "home"
    target.mkdir()
    home.mkdir()
    (target / "precious").write_text("keep")
    (home / "directory").symlink_to(target)
    with pytest.raises(NotADirectoryError):
        open_directory(open_fd(home), "directory")
    (home / f"{0:020d}.idx").symlink_to(target / "precious")
    with pytest.raises(FileExistsError):
        open_writer(home)
    (home / "tree").mkdir()
    (home / "tree" / "link").symlink_to(target)
    remove_tree("tree", open_fd(home))
    remove_tree("directory", open_fd(home))
    assert sorted(path.name for path in home.iterdir()) == [f"{0:020d}.idx"]
    assert (target / "precious").read_text() == "keep"


def count_open_files(directory: Path) -> int:
    """Return how many files below the directory this process has open."""
    count = 0
    for name in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):  # the descriptor of the listing itself
            count += Path(os.readlink(f"/proc/self/fd/{name}")).is_relative_to(directory)
    return count


def write_spool(directory: Path) -> None:
    writer = open_writer(directory)
    writer.append(b"some output")
    writer.close()


def test_a_closed_reader_still_reads_and_leaves_nothing_open(tmp_path: Path) -> None:
    write_spool(tmp_path)
    reader = SpoolReader(tmp_path)
    assert reader.read(0, 4) == b"some"
    assert count_open_files(tmp_path) == 1
    reader.close()
    assert reader.read(5, 3) == b"out"
    assert count_open_files(tmp_path) == 0


def test_a_reader_that_is_dropped_leaves_nothing_open(tmp_path: Path) -> None:
    write_spool(tmp_path)
    reader = SpoolReader(tmp_path)
    assert reader.read(0, 4) == b"some"
    assert count_open_files(tmp_path) == 1
    del reader
    assert count_open_files(tmp_path) == 0


def test_index_entries_that_could_not_be_written_are_dropped_when_the_spool_is_closed(tmp_path: Path) -> None:
    writer = open_writer(tmp_path, size=(80, 24))
    with file_size_limit(INDEX_ENTRY.size + 3):
        writer.resize(100, 30)
        assert writer.unindexed
        writer.close()
    writer.write_index()
    assert next(tmp_path.glob("*.idx")).stat().st_size == INDEX_ENTRY.size


def make_spool(directory: Path, *segments: tuple[int, int, list[tuple[int, int, int, int]]]) -> SpoolReader:
    """Write a spool of segments, each given by its start, its size and the entries of its index."""
    for start, size, entries in segments:
        (directory / f"{start:020d}.idx").write_bytes(b"".join(INDEX_ENTRY.pack(*entry) for entry in entries))
        (directory / f"{start:020d}.bin").write_bytes(numbered(start, size))
    return SpoolReader(directory)


FIRST = [(0, 10, 80, 24), (4, 20, 0, 0), (4, 25, 100, 30), (7, 30, 0, 0)]
SECOND = [(8, 40, 100, 30), (9, 50, 0, 0), (12, 60, 120, 40)]


def test_the_index_from_an_offset_begins_with_the_current_time_and_size(tmp_path: Path) -> None:
    reader = make_spool(tmp_path, (0, 8, FIRST), (8, 8, SECOND))
    for after, current, others in (
        (0, (0, 10, 80, 24), [*FIRST[1:], *SECOND]),
        (3, (0, 10, 80, 24), [*FIRST[1:], *SECOND]),
        (4, (4, 25, 100, 30), [*FIRST[3:], *SECOND]),
        (6, (4, 25, 100, 30), [*FIRST[3:], *SECOND]),
        (7, (7, 30, 100, 30), SECOND),
        (8, (8, 40, 100, 30), SECOND[1:]),
        (9, (9, 50, 100, 30), SECOND[2:]),
        (11, (9, 50, 100, 30), SECOND[2:]),
        (12, (12, 60, 120, 40), []),
        (99, (12, 60, 120, 40), []),
    ):
        assert list(reader.index(after)) == [current, *others], after
    assert [(start, list(entries)) for start, entries in reader.segments()] == [(0, FIRST), (8, SECOND)]


def test_the_entries_near_an_offset_are_as_they_were_written(tmp_path: Path) -> None:
    reader = make_spool(tmp_path, (0, 8, FIRST), (8, 8, SECOND))
    for offset, expected in (
        (0, [*FIRST, *SECOND]),
        (1, [*FIRST, *SECOND]),
        (5, [*FIRST[2:], *SECOND]),
        (8, [*FIRST[3:], *SECOND]),
        (9, SECOND),
        (13, SECOND[2:]),
    ):
        assert list(reader.index_near(offset)) == expected, offset


def test_the_first_byte_of_a_time_is_found(tmp_path: Path) -> None:
    reader = make_spool(tmp_path, (0, 8, FIRST), (8, 8, SECOND))
    for time, offset in ((0, 0), (10, 0), (11, 4), (25, 4), (26, 7), (31, 8), (51, 12), (60, 12), (61, None)):
        assert reader.offset_at(time) == offset, time
    (tmp_path / f"{0:020d}.idx").unlink()
    assert [reader.offset_at(time) for time in (0, 40, 60)] == [8, 8, 12]
    assert list(reader.index(7)) == SECOND
    resized = tmp_path / "resized"
    resized.mkdir()
    entries = [(0, 1, 80, 24), (0, 2, 100, 30), (0, 3, 120, 40), (5, 4, 90, 20)]
    assert [list(own) for _, own in make_spool(resized, (0, 9, entries)).segments()] == [entries]
    empty = tmp_path / "empty"
    empty.mkdir()
    assert make_spool(empty, (0, 1, [])).offset_at(0) is None


@pytest.mark.parametrize("lost", [0, 8, 16])
def test_a_time_is_found_beside_a_segment_whose_index_was_lost(tmp_path: Path, lost: int) -> None:
    indexes = {0: FIRST, 8: SECOND, 16: [(16, 70, 0, 0), (18, 80, 0, 0)]} | {lost: []}
    reader = make_spool(tmp_path, *((start, 8, index) for start, index in indexes.items()))
    entries = [entry for index in indexes.values() for entry in index]
    for time in range(90):
        expected = next((offset for offset, at, _, _ in entries if at >= time), None)
        assert reader.offset_at(time) == expected, time


def test_only_files_with_the_name_of_a_segment_are_read(tmp_path: Path) -> None:
    reader = make_spool(tmp_path, (8, 4, [(8, 1, 0, 0)]))
    for name in ("7.bin", "+0000000000000000007.bin", f"{7:020d}.tmp", f"{1 << 63:020d}.bin", "x.bin"):
        (tmp_path / name).write_bytes(b"wrong")
    assert (reader.start, reader.end) == (8, 12)
    (tmp_path / f"{1 << 62:020d}.bin").write_bytes(b"last")
    assert reader.end == (1 << 62) + 4


def test_bytes_before_the_first_segment_are_reported_as_gone(tmp_path: Path) -> None:
    reader = make_spool(tmp_path, (8, 4, []))
    with pytest.raises(SpoolGone) as gone:
        reader.read(7, 1)
    assert str(gone.value) == f"offset 7 of {tmp_path} is gone, the oldest is 8"
    for limit, expected in ((0, b""), (-1, b""), (1, numbered(8, 1)), (99, numbered(8, 4))):
        assert reader.read(8, limit) == expected
    with pytest.raises(SpoolGone) as gone:
        SpoolReader(tmp_path / "nowhere").read(0, 1)
    assert str(gone.value) == f"{tmp_path / 'nowhere'} is gone"


def test_a_reader_reads_segments_in_any_order(tmp_path: Path) -> None:
    reader = make_spool(tmp_path, (0, 8, []), (8, 8, []), (16, 4, []))
    for offset in (17, 0, 9, 7, 8, 16, 15, 19):
        assert reader.read(offset, 1) == numbered(offset, 1)
    assert reader.read(20, 1) == b""
    assert reader.read(4, 99) == numbered(4, 4), "a read must end with its segment"


def test_a_new_spool_has_nothing_to_flush_and_its_files_are_private(tmp_path: Path) -> None:
    writer = open_writer(tmp_path, size=(80, 24))
    assert (writer.unwritten, writer.unindexed, writer.start, writer.end, writer.consumed) == (
        b"",
        b"",
        0,
        0,
        0,
    )
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}
    assert (writer.flush(), writer.append(b"")) == (0, 0)
    assert len(list(SpoolReader(tmp_path).index())) == 1


def test_a_dropped_segment_takes_its_index_with_it(tmp_path: Path) -> None:
    writer = open_writer(tmp_path)
    for start in range(0, 300, 100):
        writer.append(numbered(start, 100))
    writer.drop_before(200)
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"{200:020d}.bin", f"{200:020d}.idx"]
    assert writer.start == 200


def test_every_window_size_that_could_not_be_written_is_written_later(tmp_path: Path) -> None:
    writer = open_writer(tmp_path, size=(80, 24))
    with file_size_limit(INDEX_ENTRY.size + 3):
        writer.resize(100, 30)
        writer.resize(120, 40)
        with pytest.raises(OSError, match="no room for the index") as refused:
            writer.write_index()
    assert refused.value.errno == errno.ENOSPC
    writer.write_index()
    entries = INDEX_ENTRY.iter_unpack(next(tmp_path.glob("*.idx")).read_bytes())
    assert [entry[2:] for entry in entries] == [(80, 24), (100, 30), (120, 40)]


def test_the_first_entry_of_a_segment_has_the_window_size_and_later_ones_do_not_repeat_it(
    tmp_path: Path,
) -> None:
    writer = open_writer(tmp_path, segment=10, size=(80, 24))
    for _ in range(3):
        writer.append(bytes(10))
    writer.resize(100, 30)
    writer.append(bytes(1))
    own = [list(entries) for _, entries in SpoolReader(tmp_path).segments()]
    sized = [[(entry[0], *entry[2:]) for entry in each if entry[2]] for each in own]
    assert sized == [
        [(0, 80, 24)],
        [(10, 80, 24)],
        [(20, 80, 24), (30, 100, 30)],
        [(30, 100, 30)],
    ]


def test_a_closed_writer_has_no_open_file_and_can_be_closed_again(tmp_path: Path) -> None:
    writer = open_writer(tmp_path, size=(80, 24))
    assert count_open_files(tmp_path) == 3
    writer.unindexed = INDEX_ENTRY.pack(0, 0, 1, 1)
    writer.close()
    writer.close()
    assert count_open_files(tmp_path) == 0
    assert next(tmp_path.glob("*.idx")).stat().st_size >= 2 * INDEX_ENTRY.size
