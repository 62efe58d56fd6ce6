"""A subscriber that starts during many appends has the exact state of the log after every event."""

import asyncio
import json
import os
import random
from collections import defaultdict

import pytest

from bullpen.domain.events import Draft, Event, SessionChanged, WorkerActivity, WorkerReady
from bullpen.domain.snapshot import Snapshot, fold, fold_all
from bullpen.log.follow import paced
from bullpen.log.log import SessionLog
from bullpen.store.events import EventStore
from bullpen.wire.browser import read_event
from support.sample_events import SESSION_START, error_draft, worker_spawning

SUBSCRIPTIONS = 1000 if os.environ.get("BULLPEN_FAULTS") == "full" else 50
CONCURRENT = 50
MIN_EVENTS_READ = 300  # by each subscriber

rng = random.Random(7)


def busy_drafts(n: int) -> list[Draft]:
    """Return drafts of several kinds that change the snapshot."""
    return [
        Draft(WorkerActivity(activity=rng.choice(["idle", "active", "asking"]), why=f"{n}"), "w", "shell"),
        Draft(SessionChanged(title=f"title {n}")),
        *(error_draft(f"{n}.{each}", "w") for each in range(rng.randint(1, 20))),
    ]


async def write_until(log: SessionLog, stop: asyncio.Event) -> None:
    n = 0
    while not stop.is_set():
        n += 1
        await log.append(busy_drafts(n))


async def subscribe(log: SessionLog) -> Snapshot:
    """Take the snapshot and fold the encoded events that follow, as a browser does."""
    for _ in range(rng.randint(0, 50)):
        await asyncio.sleep(0)
    snapshot = log.snapshot
    follower = log.follow(snapshot.last_seq)
    if rng.random() < 0.5:
        paced(follower)
    target = snapshot.last_seq + MIN_EVENTS_READ
    async for batch in follower:
        snapshot = fold_all(snapshot, [read_event(json.loads(each)) for each in batch.encoded])
        if snapshot.last_seq >= target:
            return snapshot
    raise AssertionError("the log was closed")


async def every_event(store: EventStore, session_id: str) -> list[Event]:
    events: list[Event] = []
    while page := await store.events(session_id, after=len(events)):
        events += [event for event, _ in page]
    return events


@pytest.mark.timeout(600)
async def test_snapshot_and_tail_are_the_fold_of_the_whole_log(store: EventStore) -> None:
    log = await SessionLog.create(
        store,
        "s",
        [
            Draft(SESSION_START),
            Draft(worker_spawning(), "w", "shell"),
            Draft(WorkerReady(pid=1), "w", "shell"),
        ],
    )
    stop = asyncio.Event()
    results: list[Snapshot] = []
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(write_until(log, stop))
        for _ in range(SUBSCRIPTIONS // CONCURRENT):
            results += await asyncio.gather(*(subscribe(log) for _ in range(CONCURRENT)))
        stop.set()
    by_seq: dict[int, list[Snapshot]] = defaultdict(list)
    for snapshot in results:
        by_seq[snapshot.last_seq].append(snapshot)
    expected = Snapshot(id="s")
    for event in await every_event(store, "s"):
        expected = fold(expected, event)
        assert all(snapshot == expected for snapshot in by_seq.pop(event.seq, ()))
    assert not by_seq
    assert expected == log.snapshot
