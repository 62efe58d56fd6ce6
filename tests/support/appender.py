"""A process that appends to four sessions as fast as possible and reports each acknowledged append.

Append n of a session has an event with the text n, an outbox line with n and the consumed offset n. So a
test that kills the process can check whether all three were stored, or none.
"""

import asyncio
from multiprocessing.connection import Connection

from bullpen.domain.errors import NotFound
from bullpen.domain.events import Draft
from bullpen.log.log import ConsumedOffset, OutboxLine, SessionLog
from bullpen.store.database import Database
from bullpen.store.events import EventStore
from support.sample_events import SESSION_START, error_draft, worker_spawning

SESSIONS = ("a", "b", "c", "d")


async def append_for_ever(store: EventStore, name: str, reports: "Connection[tuple[str, int], None]") -> None:
    try:
        log = await SessionLog.open(store, name)
    except NotFound:
        log = await SessionLog.create(
            store, name, [Draft(SESSION_START), Draft(worker_spawning(), f"w-{name}", "shell")]
        )
    worker = f"w-{name}"
    n = await store.consumed_offset(worker, 1)
    while True:
        n += 1
        line = OutboxLine(worker, 1, lambda number, n=n: b"%d %d" % (number, n))  # type: ignore[misc]
        await log.append([error_draft(str(n), worker)], outbox=[line], consumed=ConsumedOffset(worker, 1, n))
        reports.send((name, n))


def run(url: str, reports: "Connection[tuple[str, int], None]") -> None:
    """Append until this process is killed."""
    asyncio.run(_append_to_all(url, reports))


async def _append_to_all(url: str, reports: "Connection[tuple[str, int], None]") -> None:
    async with Database.open(url) as database, asyncio.TaskGroup() as tasks:
        store = EventStore(database)
        for name in SESSIONS:
            tasks.create_task(append_for_ever(store, name, reports))
