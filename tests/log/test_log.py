"""The log of a session: one change at a time, numbered without gaps, visible only when stored."""

import asyncio
import gc
import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bullpen import clock
from bullpen.domain.errors import Conflict, Invalid, NotFound
from bullpen.domain.events import (
    Draft,
    Error,
    SessionChanged,
    SessionEnd,
    WorkerExited,
    WorkerReady,
)
from bullpen.domain.ids import new_id
from bullpen.domain.snapshot import Snapshot, fold_all
from bullpen.log.log import AlreadyAnswered, Change, ConsumedOffset, OutboxLine, SessionLog
from bullpen.store.answers import PendingAnswer
from bullpen.store.append import StoredAnswer
from bullpen.store.events import EventStore
from support.sample_events import SESSION_START, error_draft, error_texts, worker_spawning


@pytest.fixture
async def log(store: EventStore) -> SessionLog:
    return await SessionLog.create(store, "s", [Draft(SESSION_START)])


async def load_stored(log: SessionLog, store: EventStore) -> Snapshot:
    """Load the session as a new server does, and check that it is the fold of its events."""
    snapshot = await store.load(log.id)
    events = [event for event, _ in await store.events(log.id, limit=1_000_000)]
    assert [event.seq for event in events] == list(range(1, snapshot.last_seq + 1))
    assert snapshot == fold_all(Snapshot(id=log.id), events)
    return snapshot


async def test_a_new_session_is_stored_before_create_returns(store: EventStore) -> None:
    log = await SessionLog.create(store, "s", [Draft(SESSION_START), Draft(worker_spawning(), "w", "shell")])
    assert (log.id, log.head, log.snapshot.title) == ("s", 2, "A session")
    assert await load_stored(log, store) == log.snapshot


async def test_a_session_without_a_start_event_is_refused(store: EventStore) -> None:
    for drafts in ([], [error_draft("hello")]):
        with pytest.raises(Invalid):
            await SessionLog.create(store, "s", drafts)
    with pytest.raises(NotFound):
        await SessionLog.open(store, "s")


async def test_a_change_returns_its_events_and_the_snapshot_after_them(log: SessionLog) -> None:
    committed = await log.append([error_draft("a"), error_draft("b")])
    assert [event.seq for event in committed.events] == [2, 3]
    assert error_texts(committed.events) == ["a", "b"]
    assert committed.snapshot is log.snapshot
    assert log.head == 3


async def test_a_change_is_planned_on_the_snapshot_after_every_earlier_change(log: SessionLog) -> None:
    def rename(snapshot: Snapshot) -> Change:
        return Change(drafts=[Draft(SessionChanged(title=f"{snapshot.title}!"))])

    await asyncio.gather(*(log.change(rename) for _ in range(20)))
    assert log.snapshot.title == "A session" + "!" * 20


async def test_a_refused_change_stores_nothing(log: SessionLog, store: EventStore) -> None:
    def refuse(_: Snapshot) -> Change:
        raise Conflict("not now")

    with pytest.raises(Conflict, match="not now"):
        await log.change(refuse)
    assert (await load_stored(log, store)).last_seq == log.head == 1


async def test_a_fact_that_the_state_does_not_allow_fails_its_whole_change(
    log: SessionLog, store: EventStore
) -> None:
    await log.append([Draft(worker_spawning(), "w", "shell")])
    with pytest.raises(Conflict):
        await log.append([error_draft("fine"), Draft(WorkerExited(exit_code=0), "w", "shell")])
    assert (await load_stored(log, store)) == log.snapshot
    assert log.head == 2


async def test_an_empty_change_causes_no_transaction(log: SessionLog, store: EventStore) -> None:
    before = store.database.writer.transactions.committed
    committed = await log.change(lambda _: Change())
    assert (committed.events, committed.outbox, committed.snapshot) == ((), (), log.snapshot)
    assert store.database.writer.transactions.committed == before


async def test_lines_and_offsets_can_be_stored_without_an_event(log: SessionLog, store: EventStore) -> None:
    await log.append([Draft(worker_spawning(), "w", "shell")])
    line = OutboxLine("w", 1, lambda n: b'{"id":%d}' % n)
    committed = await log.append([], outbox=[line, line], consumed=ConsumedOffset("w", 1, 42))
    assert committed.outbox == (1, 2)
    assert await store.undelivered_lines("w", 1) == [(1, b'{"id":1}'), (2, b'{"id":2}')]
    assert await store.consumed_offset("w", 1) == 42
    assert log.head == 2


async def test_an_answer_is_rendered_from_the_snapshot_after_the_change(
    log: SessionLog, store: EventStore
) -> None:
    answer = PendingAnswer[Snapshot]("key", "hash", lambda snapshot: (200, snapshot.title.encode()))
    change = Change(drafts=[Draft(SessionChanged(title="New"))], answer=answer)
    await log.change(lambda _: change)
    assert await store.stored_answer("key") == StoredAnswer("key", "hash", 200, b"New")
    with pytest.raises(AlreadyAnswered) as caught:
        await log.change(lambda _: change)
    assert caught.value.answer.body == b"New"
    assert log.head == 2


async def test_concurrent_creations_with_one_key_create_one_session(store: EventStore) -> None:
    answer = PendingAnswer[Snapshot]("key", "hash", lambda snapshot: (201, snapshot.id.encode()))
    results = await asyncio.gather(
        *(SessionLog.create(store, name, [Draft(SESSION_START)], answer) for name in "abc"),
        return_exceptions=True,
    )
    assert sum(isinstance(each, SessionLog) for each in results) == 1
    assert sum(isinstance(each, AlreadyAnswered) for each in results) == 2


async def test_snapshot_and_head_move_only_when_the_events_are_stored(
    log: SessionLog, store: EventStore
) -> None:
    seqs: list[tuple[int, int]] = []

    async def compare(snapshot: Snapshot) -> None:
        seqs.append((snapshot.last_seq, (await store.load("s")).last_seq))

    comparisons: list[asyncio.Future[None]] = []
    log.on_commit = lambda snapshot: comparisons.append(asyncio.ensure_future(compare(snapshot)))
    for n in range(10):
        await log.append([error_draft(str(n))])
    await asyncio.gather(*comparisons)
    assert len(seqs) == 10
    assert all(in_store >= announced for announced, in_store in seqs)


async def test_the_observer_is_called_once_per_commit_and_in_order(log: SessionLog) -> None:
    committed: list[int] = []
    log.on_commit = lambda snapshot: committed.append(snapshot.last_seq)
    await asyncio.gather(*(log.append([error_draft(str(n))]) for n in range(30)))
    assert committed == list(range(2, 32))


async def test_an_observer_that_raises_does_not_stop_the_log(log: SessionLog) -> None:
    def explode(_: Snapshot) -> None:
        raise RuntimeError("observer failed")

    loop = asyncio.get_running_loop()
    reported: list[object] = []
    loop.set_exception_handler(lambda _loop, context: reported.append(context["exception"]))
    log.on_commit = explode
    await log.append([error_draft("a")])
    await log.append([error_draft("b")])
    assert log.head == 3
    assert len(reported) == 2


async def test_a_change_is_stored_although_its_caller_was_cancelled(
    log: SessionLog, store: EventStore
) -> None:
    task = asyncio.ensure_future(log.append([error_draft("kept")]))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await log.append([error_draft("after")])
    assert error_texts([event for event, _ in await store.events("s")]) == ["kept", "after"]


async def test_numbers_have_no_gap_when_callers_are_cancelled(log: SessionLog, store: EventStore) -> None:
    chance = random.Random(7)
    acknowledged: list[str] = []

    async def change(name: int) -> None:
        for n in range(5):
            text = f"{name}/{n}"
            committed = await log.append([error_draft(text)] * chance.randint(1, 3))
            acknowledged.extend(error_texts(committed.events))

    tasks = [asyncio.ensure_future(change(name)) for name in range(100)]
    while not all(task.done() for task in tasks):
        await asyncio.sleep(0)
        if chance.random() < 0.3:
            chance.choice(tasks).cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await log.append([error_draft("last")])
    snapshot = await load_stored(log, store)
    assert snapshot == log.snapshot
    kept = error_texts([event for event, _ in await store.events("s", limit=10_000)])
    assert len(set(acknowledged) - set(kept)) == 0
    assert kept[-1] == "last"


async def test_time_never_goes_back_within_a_session(
    log: SessionLog, store: EventStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = clock.now_ms()
    for hours in (1, -1, -2, 0):
        monkeypatch.setattr(clock, "now_ms", lambda at=now + hours * 3_600_000: at)
        await log.append([error_draft("tick")])
    times = [event.timestamp for event, _ in await store.events("s")]
    assert times == sorted(times)
    assert times[-1] == now + 3_600_000


async def test_odd_characters_are_the_same_in_memory_and_in_the_store(
    log: SessionLog, store: EventStore
) -> None:
    await log.append([Draft(worker_spawning(), "w", "r\ud800le")])
    committed = await log.append([error_draft("nul \0, half \ud800, pair \ud83d\ude00", "w")])
    ((event, _),) = await store.events("s", after=2)
    assert event.fact == committed.events[0].fact == Error(message="nul \u2400, half \ufffd, pair 😀")
    assert await load_stored(log, store) == log.snapshot


async def test_an_opened_log_continues_the_numbers_of_the_last_one(store: EventStore) -> None:
    first = await SessionLog.create(store, "s", [Draft(SESSION_START)])
    await first.append([error_draft("one")])
    snapshot = first.snapshot
    del first
    gc.collect()
    second = await SessionLog.open(store, "s")
    assert second.snapshot == snapshot
    committed = await second.append([error_draft("two")])
    assert committed.events[0].seq == 3


async def test_a_session_that_is_opened_repeatedly_has_one_log(log: SessionLog, store: EventStore) -> None:
    assert await SessionLog.open(store, "s") is log
    changes = [log.append([error_draft("a")])]
    changes += [(await SessionLog.open(store, "s")).append([error_draft(str(n))]) for n in range(5)]
    await asyncio.gather(*changes)
    assert (await load_stored(log, store)).last_seq == 7


async def test_a_log_that_is_dropped_during_a_change_is_not_opened_a_second_time(store: EventStore) -> None:
    log = await SessionLog.create(store, "s", [Draft(SESSION_START)])
    task = asyncio.ensure_future(log.append([error_draft("in flight")]))
    await asyncio.sleep(0)
    del log
    again = await SessionLog.open(store, "s")
    await again.append([error_draft("after")])
    await task
    assert error_texts([event for event, _ in await store.events("s")]) == ["in flight", "after"]


async def test_a_closed_log_refuses_changes(log: SessionLog, store: EventStore) -> None:
    log.close()
    with pytest.raises(NotFound, match="no session s"):
        await log.append([error_draft("too late")])
    assert (await SessionLog.open(store, "s")) is not log


async def test_events_that_a_log_does_not_have_are_not_in_its_memory(log: SessionLog) -> None:
    """The recorder may know more events than the log: the session was purged and imported again."""
    before = log.head
    follower = log.follow(before)  # without one, a log keeps no events in memory
    await log.append([error_draft("new")])
    assert follower.after == before
    assert log.recent_batch(before, log.head) is not None
    assert log.recent_batch(before, log.head + 1) is None


async def test_a_session_that_is_ended_concurrently_ends_once(log: SessionLog) -> None:
    end = Draft(SessionEnd(status="completed", reason="user_request"))
    results = await asyncio.gather(*(log.append([end]) for _ in range(5)), return_exceptions=True)
    assert sum(isinstance(each, Conflict) for each in results) == 4
    assert log.head == 2


steps = st.lists(
    st.one_of(
        st.builds(error_draft, st.text(st.characters(exclude_categories=()), max_size=20)),
        st.builds(lambda text: error_draft(text, "w"), st.text(max_size=5)),
        st.just(Draft(WorkerReady(pid=1), "w", "shell")),
        st.just(Draft(WorkerExited(exit_code=1), "w", "shell")),
        st.builds(lambda run: Draft(worker_spawning(run), "w", "shell"), st.integers(1, 5)),
        st.builds(lambda title: Draft(SessionChanged(title=title)), st.text(max_size=10)),
        st.just(Draft(SessionEnd(status="cancelled", reason="user_request"))),
    ),
    max_size=4,
)


@given(changes=st.lists(steps, max_size=12))
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_the_store_equals_the_log_after_random_changes(
    store: EventStore, changes: list[list[Draft]]
) -> None:
    worker_id = new_id()
    log = await SessionLog.create(
        store, new_id(), [Draft(SESSION_START), Draft(worker_spawning(), worker_id, "shell")]
    )
    accepted = 2
    for drafts in changes:
        mine = [Draft(each.fact, each.worker_id and worker_id, each.role) for each in drafts]
        before = log.snapshot
        try:
            committed = await log.append(mine)
        except Conflict:
            assert log.snapshot is before
        else:
            accepted += len(committed.events)
    assert log.head == accepted
    assert await load_stored(log, store) == log.snapshot
