"""Recordings are exported in pieces: complete, in order, and with secrets covered."""

import json
import struct
from pathlib import Path
from typing import Any

import pytest

from bullpen.log.export_pieces import PIECE_BYTES, cast_lines, output_chunks
from bullpen.log.recording import Recording, consistent_entries
from bullpen.log.redacted_recording import MARGIN_BYTES, RedactedRecording
from bullpen.wire.redaction import Redaction

ENTRY = struct.Struct("!QqHH")
SECOND = 10**9
START_NS = 1_767_225_600 * SECOND


def spool(directory: Path, data: bytes, *entries: tuple[int, int, int, int], start: int = 0) -> Path:
    index = b"".join(ENTRY.pack(offset, START_NS + time, cols, rows) for offset, time, cols, rows in entries)
    (directory / f"{start:020d}.idx").write_bytes(index)
    (directory / f"{start:020d}.bin").write_bytes(data)
    return directory


def pattern(size: int) -> bytes:
    return b"".join(b"%07d\n" % number for number in range(size // 8 + 1))[:size]


def test_any_part_of_a_recording_is_read_completely_in_pieces(tmp_path: Path) -> None:
    data = pattern(2 * PIECE_BYTES + 100)
    recording = Recording(spool(tmp_path, data))
    for start, end in (
        (0, len(data)),
        (0, PIECE_BYTES),
        (5, PIECE_BYTES + 6),
        (7, 7),
        (9, 8),
        (len(data) - 1, len(data) + 50),
    ):
        pieces = list(output_chunks(recording, start, end))
        assert b"".join(pieces) == data[start : max(start, end)]
        assert all(0 < len(piece) <= PIECE_BYTES for piece in pieces)
    dropped = Recording(spool(tmp_path, b"x", start=len(data)))
    (tmp_path / f"{0:020d}.bin").unlink()
    assert list(output_chunks(dropped, 0, 9)) == []


def cast(recording: Recording) -> tuple[dict[str, Any], list[list[Any]]]:
    header, *entries = (json.loads(line) for line in b"".join(cast_lines(recording, "a title")).splitlines())
    return header, entries


def test_a_cast_has_each_byte_at_the_time_of_its_entry(tmp_path: Path) -> None:
    entries = [(0, 0, 80, 24), (2, SECOND, 0, 0), (4, 2 * SECOND, 100, 30), (4, 3 * SECOND, 0, 0)]
    header, found = cast(Recording(spool(tmp_path, b"abcdef", *entries)))
    assert header["title"] == "a title"
    assert found == [[0, "o", "ab"], [1, "o", "cd"], [2, "r", "100x30"], [3, "o", "ef"]]


def test_a_cast_ends_at_the_end_of_the_recording_when_it_was_opened(tmp_path: Path) -> None:
    recording = Recording(spool(tmp_path, b"abcd", (0, 0, 80, 24)))
    with open(tmp_path / f"{0:020d}.bin", "ab") as file:
        file.write(b"later")
    assert [each[2] for each in cast(recording)[1]] == ["abcd"]
    assert list(Recording(tmp_path / "nowhere").index()) == []


def test_the_offset_of_a_time_is_that_of_the_next_index_entry(tmp_path: Path) -> None:
    recording = Recording(spool(tmp_path, b"abcdef", (0, 0, 80, 24), (4, 10, 0, 0), (9, 20, 0, 0)))
    offsets = [recording.offset_at(START_NS + time) for time in (-1, 0, 1, 10, 11, 20, 21)]
    assert offsets == [0, 0, 4, 4, 6, 6, 6]  # never beyond the end
    assert Recording(tmp_path / "nowhere").offset_at(START_NS) == 0


@pytest.mark.parametrize("size", [10, MARGIN_BYTES, 3 * MARGIN_BYTES])
def test_a_secret_is_covered_at_whatever_offset_a_read_starts(tmp_path: Path, size: int) -> None:
    before, secret = pattern(size), b"sk-secret"
    data = before + secret + pattern(size)
    recording = RedactedRecording(spool(tmp_path, data), Redaction([r"sk-\w+"]))
    covered = before + b"*" * len(secret + b"0000000") + b"\n" + pattern(size)[8:]
    for offset in (0, size - 3, size, size + 4, size + len(secret) + 9):
        for limit in (1, 8, 2 * size):
            assert recording.read(offset, limit) == covered[offset : offset + limit]
    assert recording.read(len(data), 9) == b""


@pytest.mark.parametrize(
    ("entries", "kept"),
    [
        ([(0, 1), (5, 2), (5, 2), (9, 3)], [0, 1, 2, 3]),
        ([(0, 1), (900, 2), (5, 3), (9, 4)], [0, 2, 3]),
        ([(0, 1), (5, 900), (6, 3), (9, 4)], [0, 2, 3]),
        ([(5, 5), (900, 6)], [0, 1]),
        ([], []),
    ],
)
def test_index_entries_that_go_back_or_far_ahead_are_skipped(
    entries: list[tuple[int, int]], kept: list[int]
) -> None:
    index = [(offset, time, 80, 24) for offset, time in entries]
    assert list(consistent_entries(index)) == [index[number] for number in kept]
