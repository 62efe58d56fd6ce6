"""No byte twice, none left out, and the server hears how far a screen is."""

import asyncio

import pytest

from bullpen.client.frames import Exit, History, Output
from bullpen.client.incoming import Hole, Incoming


def test_bytes_known_from_an_earlier_connection_are_dropped() -> None:
    incoming = Incoming(after=0, may_skip=False)
    assert incoming.admit(Output(0, b"abc")) == Output(0, b"abc")
    assert incoming.admit(Output(0, b"abc")) is None
    assert incoming.admit(Output(1, b"bcde")) == Output(3, b"de")
    assert incoming.position == 5


def test_a_hole_is_noticed() -> None:
    incoming = Incoming(after=3, may_skip=False)
    with pytest.raises(Hole):
        incoming.admit(Output(4, b"x"))
    assert incoming.position == 3


def test_a_history_says_where_output_goes_on() -> None:
    incoming = Incoming(after=None, may_skip=False)
    incoming.admit(History(100, 80, 24, b"screen"))
    assert incoming.admit(Output(100, b"a")) == Output(100, b"a")
    assert incoming.position == 101


def test_without_a_history_the_first_byte_says_where_we_are() -> None:
    incoming = Incoming(after=None, may_skip=False)
    assert incoming.admit(Output(7, b"a")) == Output(7, b"a")


def test_a_screen_acknowledges_what_it_has_drawn_now_and_then() -> None:
    incoming = Incoming(after=0, may_skip=True)
    assert not incoming.drawn(Output(0, b"x" * 1000))
    assert incoming.acknowledgement() is None
    assert incoming.drawn(Output(1000, b"x" * 100_000))
    assert incoming.acknowledgement() == 101_000
    assert incoming.acknowledgement() is None


def test_one_who_wants_every_byte_acknowledges_nothing() -> None:
    incoming = Incoming(after=0, may_skip=False)
    assert not incoming.drawn(Output(0, b"x" * 1_000_000))
    assert incoming.acknowledgement() is None


async def test_the_socket_waits_for_a_reader_who_is_far_behind() -> None:
    incoming = Incoming(after=0, may_skip=False)
    much = Output(0, b"x" * 5_000_000)
    async with asyncio.timeout(30), asyncio.TaskGroup() as tasks:
        putting = tasks.create_task(incoming.put(much))
        await asyncio.sleep(0)
        assert not putting.done()
        assert await incoming.get() == much
        await putting


async def test_the_end_stays_the_end() -> None:
    incoming = Incoming(after=0, may_skip=False)
    await incoming.put(Exit(0, None))
    await incoming.put(None)
    assert await incoming.get() == Exit(0, None)
    assert await incoming.get() is None
    assert await incoming.get() is None
