"""Followers: every event once, in order, from any number on; batches that are shared and paced."""

import asyncio
import gc
import json
from collections.abc import AsyncIterator

import pytest

from bullpen.domain.errors import Invalid, NotFound
from bullpen.domain.events import Draft
from bullpen.log import follow as follow_module
from bullpen.log import tail as tail_module
from bullpen.log.follow import EventBatch, GrowthSignal, LogFollower, PacedGrowthSignal, paced
from bullpen.log.log import MAX_EVENTS_BEHIND, SessionLog
from bullpen.log.tail import EventTail
from bullpen.store.events import EventStore
from support.sample_events import SESSION_START, error_draft


@pytest.fixture
async def log(store: EventStore) -> SessionLog:
    return await SessionLog.create(store, "s", [Draft(SESSION_START)])


async def read_to(follower: LogFollower, last: int) -> list[EventBatch]:
    batches: list[EventBatch] = []
    async with asyncio.timeout(30):
        while follower.after < last:
            batches.append(await anext(follower))
    return batches


def seqs(batches: list[EventBatch]) -> list[int]:
    numbers = [json.loads(each)["seq"] for batch in batches for each in batch.encoded]
    assert [batch.first for batch in batches] == [json.loads(batch.encoded[0])["seq"] for batch in batches]
    assert [batch.last for batch in batches] == [json.loads(batch.encoded[-1])["seq"] for batch in batches]
    return numbers


async def test_a_follower_gets_what_was_and_what_comes(log: SessionLog) -> None:
    await log.append([error_draft("before")])
    follower = log.follow(0)
    assert seqs([await anext(follower)]) == [1, 2]
    waiting = asyncio.ensure_future(anext(follower))
    await asyncio.sleep(0)
    assert not waiting.done()
    await log.append([error_draft("a"), error_draft("b")])
    assert seqs([await waiting]) == [3, 4]


async def test_a_follower_starts_after_any_number(log: SessionLog) -> None:
    await log.append([error_draft(str(n)) for n in range(9)])
    for after in range(10):
        assert seqs(await read_to(log.follow(after), 10)) == list(range(after + 1, 11))


@pytest.mark.parametrize("after", [-1, 2, 1000])
async def test_a_number_the_log_never_gave_out_means_subscribe_again(log: SessionLog, after: int) -> None:
    with pytest.raises(Invalid, match="subscribe again"):
        log.follow(after)


async def test_a_long_past_comes_in_pages_from_the_database(store: EventStore) -> None:
    log = await SessionLog.create(
        store, "s", [Draft(SESSION_START), *(error_draft(str(n)) for n in range(2499))]
    )
    batches = await read_to(log.follow(0), 2500)
    assert seqs(batches) == list(range(1, 2501))
    assert [len(batch.encoded) for batch in batches] == [1000, 1000, 500]


async def test_past_and_present_join_without_a_seam(log: SessionLog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tail_module, "MAX_EVENTS", 50)
    first = log.follow(0)
    for n in range(40):
        await log.append([error_draft(f"{n}/{each}") for each in range(7)])
    assert seqs(await read_to(first, 281)) == list(range(1, 282))
    for after in range(220, 281, 3):
        assert seqs(await read_to(log.follow(after), 281)) == list(range(after + 1, 282))


async def test_the_same_event_has_the_same_bytes_from_memory_and_from_the_database(
    log: SessionLog, store: EventStore
) -> None:
    follower = log.follow(0)
    await log.append([error_draft("☃ naïve")])
    from_memory = [each for batch in await read_to(follower, 2) for each in batch.encoded]
    assert from_memory == await store.encoded_events("s")


async def test_those_who_stand_together_share_one_batch(log: SessionLog) -> None:
    followers = [log.follow(1) for _ in range(20)]
    await log.append([error_draft("a")])
    batches = [await anext(follower) for follower in followers]
    assert all(batch is batches[0] for batch in batches)


async def test_a_slow_follower_slows_nobody_and_misses_nothing(log: SessionLog) -> None:
    slow, fast = log.follow(1), log.follow(1)
    for n in range(50):
        await log.append([error_draft(str(n))])
        assert seqs([await anext(fast)]) == [n + 2]
    assert seqs(await read_to(slow, 51)) == list(range(2, 52))


async def test_a_follower_that_is_cancelled_leaves_the_others_waiting(log: SessionLog) -> None:
    waiting = [asyncio.ensure_future(anext(log.follow(1))) for _ in range(3)]
    await asyncio.sleep(0)
    waiting[1].cancel()
    await asyncio.gather(waiting[1], return_exceptions=True)
    await log.append([error_draft("still here")])
    assert seqs([await waiting[0]]) == seqs([await waiting[2]]) == [2]


async def test_closing_ends_every_follower(log: SessionLog) -> None:
    async def drain(follower: AsyncIterator[EventBatch]) -> int:
        return sum([len(batch.encoded) async for batch in follower])

    waiting = [
        asyncio.ensure_future(drain(log.follow(0))),
        asyncio.ensure_future(drain(paced(log.follow(1)))),
    ]
    await asyncio.sleep(0)
    log.close()
    async with asyncio.timeout(30):
        await asyncio.gather(*waiting)


async def test_following_what_was_purged_is_an_end_not_a_loop(log: SessionLog, store: EventStore) -> None:
    follower = log.follow(0)
    await store.purge("s")
    with pytest.raises(NotFound):
        await anext(follower)


async def test_far_behind_is_better_served_with_a_snapshot(log: SessionLog) -> None:
    assert not log.is_far_behind(0)
    await log.append([error_draft(str(n)) for n in range(MAX_EVENTS_BEHIND)])
    assert log.is_far_behind(0)
    assert not log.is_far_behind(1)


async def test_without_a_follower_nothing_is_kept_in_memory(log: SessionLog) -> None:
    follower = log.follow(1)
    await log.append([error_draft("x" * 1000) for _ in range(100)])
    assert log.events_in_memory == 100
    del follower
    gc.collect()
    await log.append([error_draft("y")])
    assert log.events_in_memory == 0


def test_the_tail_keeps_to_its_limits() -> None:
    tail = EventTail(10)
    tail.extend([b"%d" % n for n in range(11, 5011)])
    assert (tail.head, tail.start) == (5010, 5010 - tail_module.MAX_EVENTS)
    assert tail.between(5000, 5003) == [b"5001", b"5002", b"5003"]
    tail.extend([b"x" * tail_module.MAX_BYTES, b"y"])
    assert (tail.head, tail.start) == (5012, 5011)
    assert tail.between(5011, 5012) == [b"y"]
    tail.skip_to(6000)
    assert (tail.head, tail.start) == (6000, 6000)


async def test_a_bell_wakes_all_who_wait_and_none_who_comes_later() -> None:
    bell = GrowthSignal(0)
    waiting = [asyncio.ensure_future(bell.wait()) for _ in range(5)]
    await asyncio.sleep(0)
    bell.announce(1)
    await asyncio.gather(*waiting)
    later = asyncio.ensure_future(bell.wait())
    await asyncio.sleep(0)
    assert not later.done()
    later.cancel()


async def test_a_paced_bell_rings_at_once_and_then_by_one_timer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follow_module, "MIN_BATCH_INTERVAL", 0.2)
    rings: list[int] = []
    bell = PacedGrowthSignal(0)

    async def listen() -> None:
        while bell.head < 100:
            await bell.wait()
            rings.append(bell.head)

    listening = asyncio.ensure_future(listen())
    await asyncio.sleep(0)
    for head in range(1, 101):
        bell.announce(head)
        await asyncio.sleep(0)
    async with asyncio.timeout(30):
        await listening
    assert rings[0] == 1  # the first at once
    assert rings[-1] == 100  # the last is never forgotten
    assert len(rings) <= 5  # the rest together


async def test_a_paced_bell_rings_less_often_for_a_crowd() -> None:
    bell = PacedGrowthSignal(0, range(10_000_000))
    bell.announce(1)
    assert bell.head == 1
    bell.announce(2)
    await asyncio.sleep(2 * follow_module.MIN_BATCH_INTERVAL)
    assert bell.head == 1


async def test_a_paced_follower_gets_few_batches_and_every_event(
    log: SessionLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follow_module, "MIN_BATCH_INTERVAL", 1.0)
    followers = [paced(log.follow(1)) for _ in range(3)]
    reading = [asyncio.ensure_future(read_to(follower, 101)) for follower in followers]
    await asyncio.sleep(0)
    for n in range(100):
        await log.append([error_draft(str(n))])
    everyone = await asyncio.gather(*reading)
    for batches in everyone:
        assert seqs(batches) == list(range(2, 102))
        assert len(batches) < 30
    assert everyone[0] == everyone[1] == everyone[2]


class Taker:
    """Takes what it is offered, unless it is told not to; what it did not take it gets as a follower."""

    def __init__(self, log: SessionLog, after: int) -> None:
        self.willing = True
        self.taken: list[EventBatch] = []
        self.given: list[EventBatch] = []
        self.follower = paced(log.follow(after), self._take)
        self.following = asyncio.ensure_future(self._follow())

    @property
    def last(self) -> int:
        return self.follower.after

    def _take(self, batch: EventBatch) -> bool:
        if self.willing:
            self.taken.append(batch)
        return self.willing

    async def _follow(self) -> None:
        async for batch in self.follower:
            self.given.append(batch)


async def until_at(seq: int, *takers: Taker) -> None:
    async with asyncio.timeout(30):
        while any(taker.last < seq for taker in takers):
            await asyncio.sleep(0.001)


async def test_what_is_taken_at_once_wakes_nobody(log: SessionLog) -> None:
    takers = [Taker(log, 1) for _ in range(3)]
    await asyncio.sleep(0)
    for n in range(20):
        await log.append([error_draft(str(n))])
    await until_at(21, *takers)
    for taker in takers:
        assert seqs(taker.taken) == list(range(2, 22))
        assert taker.given == []
    assert all(taker.taken == takers[0].taken for taker in takers)
    log.close()
    async with asyncio.timeout(30):
        await asyncio.gather(*(taker.following for taker in takers))


async def test_what_cannot_be_taken_is_given_once_and_in_order(log: SessionLog) -> None:
    steady, moody = Taker(log, 1), Taker(log, 1)
    await asyncio.sleep(0)
    for n in range(40):
        moody.willing = n % 3 == 0
        await log.append([error_draft(str(n))])
        await until_at(n + 2, steady, moody)
    assert seqs(sorted([*moody.taken, *moody.given], key=lambda batch: batch.first)) == list(range(2, 42))
    assert moody.taken
    assert moody.given
    assert seqs(steady.taken) == list(range(2, 42))
    log.close()


async def test_what_is_not_in_memory_any_more_is_given(
    log: SessionLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tail_module, "MAX_EVENTS", 5)
    taker = Taker(log, 1)
    await asyncio.sleep(0)
    await log.append([error_draft(str(n)) for n in range(20)])
    await until_at(21, taker)
    assert (taker.taken, seqs(taker.given)) == ([], list(range(2, 22)))
    log.close()


async def test_one_that_is_cancelled_takes_nothing_more(log: SessionLog) -> None:
    taker = Taker(log, 1)
    await asyncio.sleep(0)
    taker.following.cancel()
    log.paced_growth.announce(log.head + 1)  # before it has heard of its end
    await asyncio.gather(taker.following, return_exceptions=True)
    await log.append([error_draft("too late")])
    assert (taker.taken, taker.given) == ([], [])


async def test_who_begins_ahead_of_the_bell_waits_for_what_follows(
    log: SessionLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follow_module, "MIN_BATCH_INTERVAL", 0.2)
    early = Taker(log, 1)
    await asyncio.sleep(0)
    await log.append([error_draft("at once")])
    await log.append([error_draft("held back")])
    late = Taker(log, 3)
    await until_at(3, early)
    await log.append([error_draft("for both")])
    await until_at(4, early, late)
    assert (seqs(early.taken), seqs(late.taken)) == ([2, 3, 4], [4])
    log.close()
