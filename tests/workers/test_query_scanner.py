"""The query scanner: the reader of a terminal is not woken for short output without queries."""

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from bullpen.keeper.spool import SpoolWriter
from bullpen.log.recording import Recording
from bullpen.workers.query_scanner import FLOOD_BYTES, READ_BYTES, QueryScanner

QUERY = b"\x1b[6n"


class ScannedProgram:
    """The output of a program, as the keeper writes it, and its scanner."""

    def __init__(self, directory: Path) -> None:
        self._spool = SpoolWriter(os.open(directory, os.O_RDONLY), segment=1 << 16, retention=1 << 17)
        self.recording = Recording(directory)
        self.woken = asyncio.Event()
        self.scanner = QueryScanner(self.recording, 0, self.woken)
        self.recording.watch(self.scanner.scan)

    def write(self, *data: bytes) -> None:
        """Write each piece on its own, and notify the server once."""
        self.recording.grow([self._spool.append(each) for each in data][-1])

    def close(self) -> None:
        self.recording.close()
        self._spool.close()


@pytest.fixture
def program(tmp_path: Path) -> Iterator[ScannedProgram]:
    this = ScannedProgram(tmp_path)
    yield this
    this.close()


def test_output_without_a_query_is_skipped(program: ScannedProgram) -> None:
    for word in (b"one ", b"\x1b[1mtwo\x1b[0m ", b"three"):
        program.write(word)
    assert program.scanner.offset == program.recording.end
    assert not program.woken.is_set()


def test_a_flood_of_plain_text_does_not_wake_the_reader(program: ScannedProgram) -> None:
    program.write(b"x" * (READ_BYTES - 2))
    assert program.scanner.offset == program.recording.end
    assert not program.woken.is_set()


@pytest.mark.parametrize(
    "output",
    [QUERY, b"\x1b[1m" * FLOOD_BYTES, b"x" * READ_BYTES, b"x" * (READ_BYTES - 1)],
    ids=["a query", "a coloured flood", "a whole read", "almost a whole read"],
)
def test_the_reader_is_woken_for_a_query_or_for_long_output(program: ScannedProgram, output: bytes) -> None:
    program.write(b"text ")
    program.write(output)
    assert program.woken.is_set()
    assert program.scanner.read_next() == output


@pytest.mark.parametrize("cut", range(1, len(QUERY)))
def test_a_query_is_found_wherever_it_is_cut(program: ScannedProgram, cut: int) -> None:
    program.write(b"text" + QUERY[:cut])
    program.write(QUERY[cut:])
    assert program.woken.is_set()


def test_a_query_is_found_after_the_end_of_a_segment(program: ScannedProgram) -> None:
    program.woken.set()
    program.write(b"x" * ((1 << 16) - 2))
    program.scanner.advance(program.scanner.read_next())
    program.woken.clear()
    program.write(b"text", QUERY)
    assert program.woken.is_set()


def test_an_escape_at_the_end_waits_for_the_next_bytes(program: ScannedProgram) -> None:
    program.write(b"text\x1b")
    assert program.scanner.offset == len(b"text")
    assert not program.woken.is_set()
    program.write(b"[1mbold")
    assert program.scanner.offset == program.recording.end
    assert not program.woken.is_set()


def test_an_escape_at_the_end_of_a_flood_waits_for_the_next_bytes(program: ScannedProgram) -> None:
    program.write(b"\x1b[1m" * FLOOD_BYTES + b"\x1b")
    assert not program.scanner.advance(program.scanner.read_next())
    assert program.scanner.read_next() == b""
    program.woken.clear()
    program.write(b"[1mbold\x1b")
    program.write(b"[6n")
    assert program.woken.is_set()
    assert program.scanner.advance(program.scanner.read_next())


def test_a_woken_reader_reads_all_further_output(program: ScannedProgram) -> None:
    program.write(QUERY)
    program.write(b"more")
    assert program.scanner.offset == 0
    piece = program.scanner.read_next()
    assert piece == QUERY + b"more"
    assert program.scanner.advance(piece)
    assert program.scanner.read_next() == b""


def test_output_that_was_deleted_is_skipped(program: ScannedProgram) -> None:
    program.woken.set()
    for _ in range(8):
        program.write(b"x" * (1 << 16))
    start = program.recording.start
    assert start > 0
    assert program.scanner.read_next(10) == b"x" * 10
    assert program.scanner.offset == start


def test_the_reader_is_woken_when_the_disk_cannot_be_read(
    program: ScannedProgram, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(offset: int, limit: int) -> bytes:
        raise OSError(24, "no descriptor is free")

    monkeypatch.setattr(program.recording, "read", refuse)
    program.write(b"text")
    assert program.woken.is_set()
    assert program.scanner.offset == 0
