"""A SQLite file that another process has locked: commands are refused, patient changes are stored later."""

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from bullpen.domain.errors import StorageFull, Unavailable
from bullpen.domain.events import Draft
from bullpen.log.log import SessionLog
from bullpen.store.database import Database
from bullpen.store.events import EventStore
from support.intervals import shortened
from support.sample_events import SESSION_START, error_draft, error_texts


@pytest.fixture(autouse=True)
def short_wait() -> Iterator[None]:
    with shortened(lock_wait=0.5):
        yield


async def test_a_patient_change_that_waited_for_a_lock_is_stored_once(tmp_path: Path) -> None:
    path = tmp_path / "bullpen.db"
    async with Database.open(f"sqlite:///{path}") as database:
        store = EventStore(database)
        log = await SessionLog.create(store, "s", [Draft(SESSION_START)])
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            patient = asyncio.ensure_future(log.append([error_draft("patient")], patient=True))
            command = asyncio.ensure_future(log.append([error_draft("command")]))
            with pytest.raises(Unavailable, match=r"bullpen\.db locked") as refused:
                await command
            assert not isinstance(refused.value, StorageFull)
            assert not patient.done()
            assert not store.full
            other.execute("ROLLBACK")
        async with asyncio.timeout(60):
            await patient
        assert error_texts([event for event, _ in await store.events("s", limit=100)]) == ["patient"]


async def test_a_group_of_writes_waits_for_a_lock_once(tmp_path: Path) -> None:
    path = tmp_path / "bullpen.db"
    async with Database.open(f"sqlite:///{path}") as database:
        logs = [
            await SessionLog.create(EventStore(database), f"s{n}", [Draft(SESSION_START)]) for n in range(20)
        ]
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            first = asyncio.ensure_future(logs[0].append([error_draft("first")]))
            others = [asyncio.ensure_future(log.append([error_draft("more")])) for log in logs[1:]]
            refused = await asyncio.gather(first, *others, return_exceptions=True)
            other.execute("ROLLBACK")
        assert {type(each) for each in refused} == {Unavailable}
        assert database.writer.transactions.refused <= 2
