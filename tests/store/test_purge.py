"""A purged session leaves nothing behind, is hidden from the first moment, and its purge outlasts a crash."""

import pytest
from sqlalchemy import Connection, func, select

from bullpen.domain.errors import NotFound
from bullpen.domain.events import Draft
from bullpen.domain.snapshot import Snapshot
from bullpen.store.append import Consumed, OutboxLine
from bullpen.store.database import Database
from bullpen.store.events import EventStore
from bullpen.store.records import RecordStore
from bullpen.store.statements import upsert_rows
from bullpen.store.tables import metadata, purges
from support.sample_events import SESSION_START, append_to, error_draft, worker_spawning


async def full_session(store: EventStore, name: str, length: int = 1500) -> None:
    append = append_to(
        Snapshot(id=name),
        Draft(SESSION_START),
        Draft(worker_spawning(), f"{name}-w", "shell"),
        *(error_draft(str(n), f"{name}-w") for n in range(length)),
    )
    await store.commit(append)
    line = OutboxLine(f"{name}-w", 1, lambda n: b"%d" % n)
    await store.commit(append_to(append.snapshot, outbox=[line], consumed=Consumed(f"{name}-w", 1, 9)))


async def counts(database: Database) -> dict[str, int]:
    def count(connection: Connection) -> dict[str, int]:
        return {
            table.name: connection.execute(select(func.count()).select_from(table)).scalar_one()
            for table in metadata.sorted_tables
            if table.name != "server"  # one row, of no session
        }

    return await database.read(count)


async def test_a_purge_leaves_nothing_of_the_session_and_all_of_the_others(store: EventStore) -> None:
    await full_session(store, "kept")
    before = await counts(store.database)
    await full_session(store, "gone", length=12_000)
    await store.purge("gone")
    assert await counts(store.database) == before
    assert (await store.load("kept")).last_seq == 1502


async def test_what_is_not_there_cannot_be_purged(store: EventStore) -> None:
    with pytest.raises(NotFound, match="no session ghost"):
        await store.purge("ghost")


async def test_a_purge_cut_short_hides_the_session_and_is_finished_later(store: EventStore) -> None:
    records = RecordStore(store.database)
    await full_session(store, "half")
    # As if the server had died after the first step of the purge.
    await store.database.write(lambda c: upsert_rows(c, purges, [{"session_id": "half"}]))
    with pytest.raises(NotFound):
        await store.load("half")
    assert (await records.list_sessions()).total == 0
    assert await records.live_sessions() == []
    assert await records.sessions_of_workers(["half-w"]) == {}
    assert await store.unfinished_purges() == {"half": ["half-w"]}
    await store.purge("half")
    assert await store.unfinished_purges() == {}
    assert set((await counts(store.database)).values()) == {0}


async def test_a_session_can_be_made_anew_under_its_old_id(store: EventStore) -> None:
    await full_session(store, "s")
    await store.purge("s")
    await store.commit(append_to(Snapshot(id="s"), Draft(SESSION_START)))
    assert (await store.load("s")).last_seq == 1
