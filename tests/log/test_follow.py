"""Followers: each gets every event once and in order; batches are shared and rate-limited."""

import asyncio
import gc
import json
from collections.abc import AsyncIterator

import pytest

from bullpen.domain.errors import Invalid, NotFound
from bullpen.domain.events import Draft
from bullpen.log import event_tail
from bullpen.log import follow as follow_module
from bullpen.log.event_tail import EventTail
from bullpen.log.follow import EventBatch, GrowthSignal, LogFollower, PacedGrowthSignal, paced
from bullpen.log.log import MAX_EVENTS_BEHIND, SessionLog
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


async def test_a_follower_gets_past_and_new_events(log: SessionLog) -> None:
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
async def test_following_after_an_unknown_number_is_refused(log: SessionLog, after: int) -> None:
    with pytest.raises(Invalid, match="subscribe again"):
        log.follow(after)


async def test_many_past_events_are_read_in_pages_from_the_database(store: EventStore) -> None:
    log = await SessionLog.create(
        store, "s", [Draft(SESSION_START), *(error_draft(str(n)) for n in range(2499))]
    )
    batches = await read_to(log.follow(0), 2500)
    assert seqs(batches) == list(range(1, 2501))
    assert [len(batch.encoded) for batch in batches] == [1000, 1000, 500]


async def test_past_events_and_new_events_join_without_a_gap(
    log: SessionLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_tail, "MAX_EVENTS", 50)
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


async def test_followers_at_the_same_position_share_one_batch(log: SessionLog) -> None:
    followers = [log.follow(1) for _ in range(20)]
    await log.append([error_draft("a")])
    batches = [await anext(follower) for follower in followers]
    assert all(batch is batches[0] for batch in batches)


async def test_a_slow_follower_does_not_delay_others_and_misses_no_event(log: SessionLog) -> None:
    slow, fast = log.follow(1), log.follow(1)
    for n in range(50):
        await log.append([error_draft(str(n))])
        assert seqs([await anext(fast)]) == [n + 2]
    assert seqs(await read_to(slow, 51)) == list(range(2, 52))


async def test_a_cancelled_follower_does_not_affect_the_others(log: SessionLog) -> None:
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


async def test_following_a_purged_session_raises_not_found(log: SessionLog, store: EventStore) -> None:
    follower = log.follow(0)
    await store.purge("s")
    with pytest.raises(NotFound):
        await anext(follower)


async def test_a_position_is_far_behind_beyond_the_limit_of_events(log: SessionLog) -> None:
    assert not log.is_far_behind(0)
    await log.append([error_draft(str(n)) for n in range(MAX_EVENTS_BEHIND)])
    assert log.is_far_behind(0)
    assert not log.is_far_behind(1)


async def test_events_are_kept_in_memory_only_while_there_is_a_follower(log: SessionLog) -> None:
    follower = log.follow(1)
    await log.append([error_draft("x" * 1000) for _ in range(100)])
    assert log.events_in_memory == 100
    del follower
    gc.collect()
    await log.append([error_draft("y")])
    assert log.events_in_memory == 0


def test_the_tail_keeps_its_limits() -> None:
    tail = EventTail(10)
    tail.extend([b"%d" % n for n in range(11, 5011)])
    assert (tail.head, tail.start) == (5010, 5010 - event_tail.MAX_EVENTS)
    assert tail.between(5000, 5003) == [b"5001", b"5002", b"5003"]
    tail.extend([b"x" * event_tail.MAX_BYTES, b"y"])
    assert (tail.head, tail.start) == (5012, 5011)
    assert tail.between(5011, 5012) == [b"y"]
    tail.skip_to(6000)
    assert (tail.head, tail.start) == (6000, 6000)


async def test_an_announcement_wakes_all_waiting_tasks_and_no_later_one() -> None:
    signal = GrowthSignal(0)
    waiting = [asyncio.ensure_future(signal.wait()) for _ in range(5)]
    await asyncio.sleep(0)
    signal.announce(1)
    await asyncio.gather(*waiting)
    later = asyncio.ensure_future(signal.wait())
    await asyncio.sleep(0)
    assert not later.done()
    later.cancel()


async def test_a_paced_signal_announces_the_first_head_immediately_and_later_ones_by_a_timer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(follow_module, "MIN_BATCH_INTERVAL", 0.2)
    heads: list[int] = []
    signal = PacedGrowthSignal(0)

    async def listen() -> None:
        while signal.head < 100:
            await signal.wait()
            heads.append(signal.head)

    task = asyncio.ensure_future(listen())
    await asyncio.sleep(0)
    for head in range(1, 101):
        signal.announce(head)
        await asyncio.sleep(0)
    async with asyncio.timeout(30):
        await task
    assert heads[0] == 1  # the first head immediately
    assert heads[-1] == 100  # the last head always
    assert len(heads) <= 5  # the others coalesced


async def test_a_paced_signal_announces_less_often_with_many_followers() -> None:
    signal = PacedGrowthSignal(0, range(10_000_000))
    signal.announce(1)
    assert signal.head == 1
    signal.announce(2)
    await asyncio.sleep(2 * follow_module.MIN_BATCH_INTERVAL)
    assert signal.head == 1


async def test_a_paced_follower_gets_few_batches_and_every_event(
    log: SessionLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follow_module, "MIN_BATCH_INTERVAL", 1.0)
    followers = [paced(log.follow(1)) for _ in range(3)]
    reading = [asyncio.ensure_future(read_to(follower, 101)) for follower in followers]
    await asyncio.sleep(0)
    for n in range(100):
        await log.append([error_draft(str(n))])
    results = await asyncio.gather(*reading)
    for batches in results:
        assert seqs(batches) == list(range(2, 102))
        assert len(batches) < 30
    assert results[0] == results[1] == results[2]


class CallbackFollower:
    """A follower with a callback. It reads the batches that its callback did not take."""

    def __init__(self, log: SessionLog, after: int) -> None:
        self.accepts = True
        self.taken: list[EventBatch] = []
        self.read: list[EventBatch] = []
        self.follower = paced(log.follow(after), self._take)
        self.task = asyncio.ensure_future(self._follow())

    @property
    def last(self) -> int:
        return self.follower.after

    def _take(self, batch: EventBatch) -> bool:
        if self.accepts:
            self.taken.append(batch)
        return self.accepts

    async def _follow(self) -> None:
        async for batch in self.follower:
            self.read.append(batch)


async def wait_for_seq(seq: int, *followers: CallbackFollower) -> None:
    async with asyncio.timeout(30):
        while any(follower.last < seq for follower in followers):
            await asyncio.sleep(0.001)


async def test_batches_that_the_callback_takes_do_not_wake_the_follower(log: SessionLog) -> None:
    followers = [CallbackFollower(log, 1) for _ in range(3)]
    await asyncio.sleep(0)
    for n in range(20):
        await log.append([error_draft(str(n))])
    await wait_for_seq(21, *followers)
    for follower in followers:
        assert seqs(follower.taken) == list(range(2, 22))
        assert follower.read == []
    assert all(follower.taken == followers[0].taken for follower in followers)
    log.close()
    async with asyncio.timeout(30):
        await asyncio.gather(*(follower.task for follower in followers))


async def test_batches_that_the_callback_refuses_are_read_once_and_in_order(log: SessionLog) -> None:
    steady, changing = CallbackFollower(log, 1), CallbackFollower(log, 1)
    await asyncio.sleep(0)
    for n in range(40):
        changing.accepts = n % 3 == 0
        await log.append([error_draft(str(n))])
        await wait_for_seq(n + 2, steady, changing)
    assert seqs(sorted([*changing.taken, *changing.read], key=lambda batch: batch.first)) == list(
        range(2, 42)
    )
    assert changing.taken
    assert changing.read
    assert seqs(steady.taken) == list(range(2, 42))
    log.close()


async def test_events_that_are_no_longer_in_memory_are_read_by_the_follower(
    log: SessionLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_tail, "MAX_EVENTS", 5)
    follower = CallbackFollower(log, 1)
    await asyncio.sleep(0)
    await log.append([error_draft(str(n)) for n in range(20)])
    await wait_for_seq(21, follower)
    assert (follower.taken, seqs(follower.read)) == ([], list(range(2, 22)))
    log.close()


async def test_the_callback_of_a_cancelled_follower_is_not_called(log: SessionLog) -> None:
    follower = CallbackFollower(log, 1)
    await asyncio.sleep(0)
    follower.task.cancel()
    log.paced_growth.announce(log.head + 1)  # before its task has ended
    await asyncio.gather(follower.task, return_exceptions=True)
    await log.append([error_draft("too late")])
    assert (follower.taken, follower.read) == ([], [])


async def test_a_follower_that_starts_after_the_announced_head_waits_for_the_next_event(
    log: SessionLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follow_module, "MIN_BATCH_INTERVAL", 0.2)
    early = CallbackFollower(log, 1)
    await asyncio.sleep(0)
    await log.append([error_draft("first")])
    await log.append([error_draft("delayed")])
    late = CallbackFollower(log, 3)
    await wait_for_seq(3, early)
    await log.append([error_draft("for both")])
    await wait_for_seq(4, early, late)
    assert (seqs(early.taken), seqs(late.taken)) == ([2, 3, 4], [4])
    log.close()
