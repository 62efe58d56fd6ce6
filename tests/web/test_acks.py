"""When keys are acknowledged: soon, many as one, and never between a key and its echo."""

import asyncio

import pytest

from bullpen.web.sockets import acks
from bullpen.web.sockets.acks import InputAcks


class Told:
    """Notes what was acknowledged, as a viewer that is at rest does."""

    def __init__(self) -> None:
        self.acks = InputAcks(self._tell)
        self.numbers: list[int] = []
        self._news = asyncio.Event()

    def _tell(self) -> None:
        self.acks.due = False
        self.numbers.append(self.acks.last)
        self._news.set()

    async def next(self) -> int:
        self._news.clear()
        async with asyncio.timeout(10):
            await self._news.wait()
        return self.numbers[-1]


async def test_a_key_is_acknowledged_a_moment_after_it_was_taken() -> None:
    told = Told()
    told.acks.note_sent()
    told.acks.note_accepted(1)
    assert told.numbers == []
    assert await told.next() == 1


async def test_many_keys_are_acknowledged_by_the_last() -> None:
    told = Told()
    for n in range(1, 100):
        told.acks.note_sent()
        told.acks.note_accepted(n)
    assert await told.next() == 99
    assert told.numbers == [99]


@pytest.mark.parametrize(("second", "acknowledged"), [(2, 2), (None, 1)], ids=["taken", "refused"])
async def test_no_acknowledgement_comes_between_a_key_and_its_echo(
    monkeypatch: pytest.MonkeyPatch, second: int | None, acknowledged: int
) -> None:
    monkeypatch.setattr(acks, "DELAY_SECONDS", 0.0)
    told = Told()
    told.acks.note_sent()
    told.acks.note_accepted(1)
    told.acks.note_sent()
    await asyncio.sleep(0.05)  # the moment has passed, the second key is on its way
    assert told.numbers == []
    told.acks.note_accepted(second)
    assert told.numbers == [acknowledged]


async def test_at_the_end_nothing_waits() -> None:
    told = Told()
    told.acks.flush()
    assert told.numbers == []
    told.acks.note_sent()
    told.acks.note_accepted(1)
    told.acks.flush()
    assert told.numbers == [1]
    told.acks.flush()
    assert told.numbers == [1]
