"""Received output has no byte twice and no gap, and drawn output is acknowledged."""

import asyncio

import pytest

from bullpen.client.frames import ExitFrame, HistoryFrame, OutputFrame
from bullpen.client.received_frames import MissingOutput, ReceivedFrames


def test_bytes_known_from_an_earlier_connection_are_dropped() -> None:
    incoming = ReceivedFrames(after=0, may_skip=False)
    assert incoming.remove_known(OutputFrame(0, b"abc")) == OutputFrame(0, b"abc")
    assert incoming.remove_known(OutputFrame(0, b"abc")) is None
    assert incoming.remove_known(OutputFrame(1, b"bcde")) == OutputFrame(3, b"de")
    assert incoming.position == 5


def test_a_gap_is_an_error() -> None:
    incoming = ReceivedFrames(after=3, may_skip=False)
    with pytest.raises(MissingOutput):
        incoming.remove_known(OutputFrame(4, b"x"))
    assert incoming.position == 3


def test_a_history_sets_the_offset_at_which_output_continues() -> None:
    incoming = ReceivedFrames(after=None, may_skip=False)
    incoming.remove_known(HistoryFrame(100, 80, 24, b"screen"))
    assert incoming.remove_known(OutputFrame(100, b"a")) == OutputFrame(100, b"a")
    assert incoming.position == 101


def test_without_a_history_the_first_output_sets_the_offset() -> None:
    incoming = ReceivedFrames(after=None, may_skip=False)
    assert incoming.remove_known(OutputFrame(7, b"a")) == OutputFrame(7, b"a")


def test_a_screen_acknowledges_drawn_output_in_intervals() -> None:
    incoming = ReceivedFrames(after=0, may_skip=True)
    assert not incoming.mark_drawn(OutputFrame(0, b"x" * 1000))
    assert incoming.take_acknowledgement() is None
    assert incoming.mark_drawn(OutputFrame(1000, b"x" * 100_000))
    assert incoming.take_acknowledgement() == 101_000
    assert incoming.take_acknowledgement() is None


def test_a_reader_that_needs_every_byte_acknowledges_nothing() -> None:
    incoming = ReceivedFrames(after=0, may_skip=False)
    assert not incoming.mark_drawn(OutputFrame(0, b"x" * 1_000_000))
    assert incoming.take_acknowledgement() is None


async def test_the_socket_waits_for_a_slow_reader() -> None:
    incoming = ReceivedFrames(after=0, may_skip=False)
    large = OutputFrame(0, b"x" * 5_000_000)
    async with asyncio.timeout(30), asyncio.TaskGroup() as tasks:
        putting = tasks.create_task(incoming.put(large))
        await asyncio.sleep(0)
        assert not putting.done()
        assert await incoming.get() == large
        await putting


async def test_after_the_end_there_are_no_more_frames() -> None:
    incoming = ReceivedFrames(after=0, may_skip=False)
    await incoming.put(ExitFrame(0, None))
    await incoming.put(None)
    assert await incoming.get() == ExitFrame(0, None)
    assert await incoming.get() is None
    assert await incoming.get() is None
