"""R-07: whoever subscribes while events pour in has, at every number, exactly what the log adds up to."""

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
AT_ONCE = 50
FOLLOWED = 300  # events each subscriber reads at least

chance = random.Random(7)


def busy_drafts(n: int) -> list[Draft]:
    """A bit of everything that changes the snapshot."""
    return [
        Draft(WorkerActivity(activity=chance.choice(["idle", "active", "asking"]), why=f"{n}"), "w", "shell"),
        Draft(SessionChanged(title=f"title {n}")),
        *(error_draft(f"{n}.{each}", "w") for each in range(chance.randint(1, 20))),
    ]


async def write_until(log: SessionLog, stop: asyncio.Event) -> None:
    n = 0
    while not stop.is_set():
        n += 1
        await log.append(busy_drafts(n))


async def subscribe(log: SessionLog) -> Snapshot:
    """What a browser does: the snapshot, then the tail, folded by itself from what came over the wire."""
    for _ in range(chance.randint(0, 50)):
        await asyncio.sleep(0)
    snapshot = log.snapshot
    follower = log.follow(snapshot.last_seq)
    if chance.random() < 0.5:
        paced(follower)
    target = snapshot.last_seq + FOLLOWED
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
    seen: list[Snapshot] = []
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(write_until(log, stop))
        for _ in range(SUBSCRIPTIONS // AT_ONCE):
            seen += await asyncio.gather(*(subscribe(log) for _ in range(AT_ONCE)))
        stop.set()
    wanted: dict[int, list[Snapshot]] = defaultdict(list)
    for snapshot in seen:
        wanted[snapshot.last_seq].append(snapshot)
    truth = Snapshot(id="s")
    for event in await every_event(store, "s"):
        truth = fold(truth, event)
        assert all(snapshot == truth for snapshot in wanted.pop(event.seq, ()))
    assert not wanted
    assert truth == log.snapshot
