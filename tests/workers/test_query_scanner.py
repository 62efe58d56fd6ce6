"""Hearing a program: nobody is woken for little that asks nothing."""

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from bullpen.keeper.spool import SpoolWriter
from bullpen.log.recording import Recording
from bullpen.workers.query_scanner import FLOOD_BYTES, READ_BYTES, QueryScanner

QUESTION = b"\x1b[6n"


class Program:
    """What it says, as the keeper writes it, and a scanner of it."""

    def __init__(self, place: Path) -> None:
        self._spool = SpoolWriter(os.open(place, os.O_RDONLY), segment=1 << 16, retention=1 << 17)
        self.recording = Recording(place)
        self.news = asyncio.Event()
        self.scanner = QueryScanner(self.recording, 0, self.news)
        self.recording.watch(self.scanner.scan)

    def say(self, *data: bytes) -> None:
        """Each piece is written for itself; the server hears of all at once."""
        self.recording.grow([self._spool.append(each) for each in data][-1])

    def close(self) -> None:
        self.recording.close()
        self._spool.close()


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    this = Program(tmp_path)
    yield this
    this.close()


def test_what_asks_nothing_is_passed_by(program: Program) -> None:
    for word in (b"one ", b"\x1b[1mtwo\x1b[0m ", b"three"):
        program.say(word)
    assert program.scanner.offset == program.recording.end
    assert not program.news.is_set()


def test_a_flood_of_plain_text_wakes_nobody(program: Program) -> None:
    program.say(b"x" * (READ_BYTES - 2))
    assert program.scanner.offset == program.recording.end
    assert not program.news.is_set()


@pytest.mark.parametrize(
    "said",
    [QUESTION, b"\x1b[1m" * FLOOD_BYTES, b"x" * READ_BYTES, b"x" * (READ_BYTES - 1)],
    ids=["a question", "a coloured flood", "a piece", "a piece before an escape, for all we know"],
)
def test_somebody_is_woken_for_what_takes_longer(program: Program, said: bytes) -> None:
    program.say(b"quiet ")
    program.say(said)
    assert program.news.is_set()
    assert program.scanner.read_next() == said


@pytest.mark.parametrize("cut", range(1, len(QUESTION)))
def test_a_question_is_heard_wherever_it_is_cut(program: Program, cut: int) -> None:
    program.say(b"text" + QUESTION[:cut])
    program.say(QUESTION[cut:])
    assert program.news.is_set()


def test_a_question_is_heard_behind_the_end_of_a_segment(program: Program) -> None:
    program.news.set()
    program.say(b"x" * ((1 << 16) - 2))
    program.scanner.advance(program.scanner.read_next())
    program.news.clear()
    program.say(b"text", QUESTION)
    assert program.news.is_set()


def test_an_escape_at_the_end_waits_for_what_follows(program: Program) -> None:
    program.say(b"text\x1b")
    assert program.scanner.offset == len(b"text")
    assert not program.news.is_set()
    program.say(b"[1mbold")
    assert program.scanner.offset == program.recording.end
    assert not program.news.is_set()


def test_an_escape_that_comes_alone_waits_as_well(program: Program) -> None:
    program.say(b"\x1b[1m" * FLOOD_BYTES + b"\x1b")
    assert not program.scanner.advance(program.scanner.read_next())
    assert program.scanner.read_next() == b""
    program.news.clear()
    program.say(b"[1mbold\x1b")
    program.say(b"[6n")
    assert program.news.is_set()
    assert program.scanner.advance(program.scanner.read_next())


def test_who_is_awake_hears_the_rest_by_himself(program: Program) -> None:
    program.say(QUESTION)
    program.say(b"more")
    assert program.scanner.offset == 0
    piece = program.scanner.read_next()
    assert piece == QUESTION + b"more"
    assert program.scanner.advance(piece)
    assert program.scanner.read_next() == b""


def test_what_is_no_longer_kept_is_passed_over(program: Program) -> None:
    program.news.set()
    for _ in range(8):
        program.say(b"x" * (1 << 16))
    start = program.recording.start
    assert start > 0
    assert program.scanner.read_next(10) == b"x" * 10
    assert program.scanner.offset == start


def test_whoever_is_woken_hears_of_a_disk_that_cannot_be_read(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(offset: int, limit: int) -> bytes:
        raise OSError(24, "no descriptor is free")

    monkeypatch.setattr(program.recording, "read", refuse)
    program.say(b"text")
    assert program.news.is_set()
    assert program.scanner.offset == 0
