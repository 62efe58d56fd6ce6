"""A purge hides a session immediately, removes all its rows, and is finished after a crash."""

import pytest
from sqlalchemy import Connection, func, select

from bullpen.domain.errors import NotFound
from bullpen.domain.events import Draft
from bullpen.domain.snapshot import Snapshot
from bullpen.store.append import ConsumedOffset, OutboxLine
from bullpen.store.database import Database
from bullpen.store.events import EventStore
from bullpen.store.records import RecordStore
from bullpen.store.statements import upsert_rows
from bullpen.store.tables import metadata, purges
from support.sample_events import SESSION_START, append_to, error_draft, worker_spawning


async def create_full_session(store: EventStore, name: str, length: int = 1500) -> None:
    append = append_to(
        Snapshot(id=name),
        Draft(SESSION_START),
        Draft(worker_spawning(), f"{name}-w", "shell"),
        *(error_draft(str(n), f"{name}-w") for n in range(length)),
    )
    await store.commit(append)
    line = OutboxLine(f"{name}-w", 1, lambda n: b"%d" % n)
    await store.commit(append_to(append.snapshot, outbox=[line], consumed=ConsumedOffset(f"{name}-w", 1, 9)))


async def row_counts(database: Database) -> dict[str, int]:
    def count(connection: Connection) -> dict[str, int]:
        return {
            table.name: connection.execute(select(func.count()).select_from(table)).scalar_one()
            for table in metadata.sorted_tables
            if table.name != "server"  # has one row, which belongs to no session
        }

    return await database.read(count)


async def test_a_purge_removes_all_rows_of_the_session_and_none_of_others(store: EventStore) -> None:
    await create_full_session(store, "kept")
    before = await row_counts(store.database)
    await create_full_session(store, "gone", length=12_000)
    await store.purge("gone")
    assert await row_counts(store.database) == before
    assert (await store.load("kept")).last_seq == 1502


async def test_a_missing_session_cannot_be_purged(store: EventStore) -> None:
    with pytest.raises(NotFound, match="no session ghost"):
        await store.purge("ghost")


async def test_an_interrupted_purge_hides_the_session_and_is_finished_later(store: EventStore) -> None:
    records = RecordStore(store.database)
    await create_full_session(store, "half")
    # The server was killed after the first step of the purge.
    await store.database.write(lambda c: upsert_rows(c, purges, [{"session_id": "half"}]))
    with pytest.raises(NotFound):
        await store.load("half")
    assert (await records.list_sessions()).total == 0
    assert await records.live_sessions() == []
    assert await records.sessions_of_workers(["half-w"]) == {}
    assert await store.unfinished_purges() == {"half": ["half-w"]}
    await store.purge("half")
    assert await store.unfinished_purges() == {}
    assert set((await row_counts(store.database)).values()) == {0}


async def test_a_session_can_be_created_again_with_the_id_of_a_purged_one(store: EventStore) -> None:
    await create_full_session(store, "s")
    await store.purge("s")
    await store.commit(append_to(Snapshot(id="s"), Draft(SESSION_START)))
    assert (await store.load("s")).last_seq == 1
