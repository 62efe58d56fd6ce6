"""The fence: one server uses a database, a second is refused or takes over, and the first then stops."""

import asyncio
import os
import shutil
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest
from sqlalchemy import text

from bullpen.domain.errors import Unavailable
from bullpen.domain.events import Draft
from bullpen.log.log import SessionLog
from bullpen.store import schema
from bullpen.store.database import Database
from bullpen.store.engine import writing_engine
from bullpen.store.events import EventStore
from bullpen.store.fence import (
    DatabaseInUse,
    DatabaseTakenOver,
    DatabaseWentBack,
    FenceOwner,
    FencePosition,
    Lease,
)
from bullpen.store.identity import forget_loss, note_loss, read_identity
from support.sample_events import SESSION_START, error_draft, error_texts

SHORT_LEASE = Lease(heartbeat=0.05, expires=0.4)
NO_HEARTBEAT = Lease(heartbeat=3600, expires=0.4)

FIRST = FenceOwner("1", "host:/first", take_over=False)
SECOND = FenceOwner("2", "host:/second", take_over=False)
TAKING_OVER = FenceOwner("2", "host:/second", take_over=True)


def fence_row(url: str) -> tuple[int, int, str]:
    engine = writing_engine(url)
    try:
        with engine.begin() as connection:
            row = connection.execute(text("SELECT epoch, commits, owner FROM server")).one()
            return row.epoch, row.commits, row.owner
    finally:
        engine.dispose()


async def wait_until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.01)


@asynccontextmanager
async def open_and_kill(url: str, owner: FenceOwner, lease: Lease) -> AsyncIterator[Database]:
    """Open a database for the block. At its end the server is killed: it does not release the fence."""
    async with Database.open(url, owner=owner, lease=lease) as database:
        yield database
        database.writer.transactions.fence.release = lambda connection: None  # type: ignore[method-assign]


async def test_each_start_raises_the_epoch_and_each_commit_the_count(url: str) -> None:
    async with Database.open(url, owner=FIRST) as database:
        log = await SessionLog.create(EventStore(database), "s", [Draft(SESSION_START)])
        await log.append([error_draft("one")])
    assert fence_row(url) == (1, 2, "1")
    async with Database.open(url, owner=FIRST):
        assert fence_row(url) == (2, 2, "1")


async def test_a_second_data_directory_is_refused_while_the_first_server_runs(url: str) -> None:
    async with Database.open(url, owner=FIRST, lease=SHORT_LEASE):
        before = fence_row(url)
        await asyncio.sleep(2 * SHORT_LEASE.expires)  # an idle server writes only its heartbeat
        with pytest.raises(DatabaseInUse, match=r"data directory is host:/first.*--take-over"):
            async with Database.open(url, owner=SECOND, lease=SHORT_LEASE):
                pass
        assert fence_row(url) == before


async def test_a_second_data_directory_may_start_when_the_heartbeat_of_the_first_server_expired(
    url: str,
) -> None:
    async with open_and_kill(url, FIRST, NO_HEARTBEAT):
        pass
    with pytest.raises(DatabaseInUse):
        async with Database.open(url, owner=SECOND, lease=Lease()):
            pass
    await asyncio.sleep(NO_HEARTBEAT.expires)
    async with Database.open(url, owner=SECOND, lease=NO_HEARTBEAT):
        assert fence_row(url)[2] == "2"


async def test_a_second_data_directory_may_start_at_once_after_a_clean_stop(url: str) -> None:
    async with Database.open(url, owner=FIRST):
        pass
    async with Database.open(url, owner=SECOND):
        assert fence_row(url) == (2, 0, "2")


async def test_the_same_data_directory_starts_at_once_after_a_kill(url: str) -> None:
    async with open_and_kill(url, FIRST, Lease()):
        pass
    async with Database.open(url, owner=FIRST):
        assert fence_row(url) == (2, 0, "1")


async def test_one_of_two_servers_that_start_concurrently_is_refused(url: str) -> None:
    schema.prepare(url)
    one_refused = asyncio.Event()

    async def start(owner: FenceOwner) -> str:
        try:
            async with Database.open(url, owner=owner):
                await one_refused.wait()
                return owner.id
        except DatabaseInUse:
            one_refused.set()
            return "refused"

    for _ in range(5):
        one_refused.clear()
        outcomes = await asyncio.gather(start(FIRST), start(SECOND))
        assert sorted(outcomes)[1] == "refused" and sorted(outcomes)[0] in "12"


async def test_a_server_whose_database_is_taken_over_writes_nothing_more(url: str) -> None:
    async with Database.open(url, owner=FIRST, lease=NO_HEARTBEAT) as database:
        store = EventStore(database)
        log = await SessionLog.create(store, "s", [Draft(SESSION_START)])
        await log.append([error_draft("of the first")])
        async with Database.open(url, owner=TAKING_OVER, lease=NO_HEARTBEAT) as other:
            other_log = await SessionLog.open(EventStore(other), "s")
            await other_log.append([error_draft("of the second")])
            patient = asyncio.ensure_future(log.append([error_draft("patient")], patient=True))
            with pytest.raises(Unavailable, match="has taken over the database"):
                await log.append([error_draft("late")])
            lost = await asyncio.wait_for(database.fence_lost, 60)
            assert isinstance(lost, DatabaseTakenOver) and "host:/second" in str(lost)
            with pytest.raises(Unavailable):
                await database.write(lambda c: c.execute(text("DELETE FROM events")).rowcount)
            patient.cancel()
            assert error_texts([event for event, _ in await EventStore(other).events("s")]) == [
                "of the first",
                "of the second",
            ]


async def test_an_idle_server_notices_with_its_heartbeat_that_another_took_over(url: str) -> None:
    async with Database.open(url, owner=FIRST, lease=SHORT_LEASE) as database:
        async with Database.open(url, owner=TAKING_OVER, lease=SHORT_LEASE):
            assert isinstance(await asyncio.wait_for(database.fence_lost, 60), DatabaseTakenOver)
            before = fence_row(url)
        assert fence_row(url) == before


async def test_heartbeats_are_not_counted_as_commits(url: str) -> None:
    async with Database.open(url, owner=FIRST, lease=SHORT_LEASE) as database:
        transactions = database.writer.transactions
        await database.write(lambda _: None)
        before = transactions._last_heartbeat
        await wait_until(lambda: transactions._last_heartbeat > before + 3 * SHORT_LEASE.heartbeat)
        assert (fence_row(url), transactions.committed) == ((1, 1, "1"), 1)


async def test_a_server_may_start_at_once_on_a_copy_of_a_database_that_is_in_use(tmp_path: Path) -> None:
    path, copy = tmp_path / "bullpen.db", tmp_path / "copy.db"
    async with Database.open(f"sqlite:///{path}", owner=FIRST) as database:
        with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(copy)) as target:
            source.backup(target)
        async with Database.open(f"sqlite:///{copy}", owner=SECOND) as other:
            await other.write(lambda _: None)
        await database.write(lambda _: None)


async def test_a_sqlite_backup_that_is_restored_under_a_running_server_stops_it(tmp_path: Path) -> None:
    path = tmp_path / "bullpen.db"
    async with Database.open(f"sqlite:///{path}", owner=FIRST, lease=NO_HEARTBEAT) as database:
        log = await SessionLog.create(EventStore(database), "s", [Draft(SESSION_START)])
        with (
            closing(sqlite3.connect(path)) as source,
            closing(sqlite3.connect(tmp_path / "backup.db")) as copy,
        ):
            source.backup(copy)
            await log.append([error_draft("acknowledged")])
            copy.backup(source)
        with pytest.raises(Unavailable, match=r"gone back in time.*of 2 commits 1 are left"):
            await log.append([error_draft("after the loss")])
        lost = await asyncio.wait_for(database.fence_lost, 60)
        assert isinstance(lost, DatabaseWentBack) and lost.newest == FencePosition(1, 2)
        assert error_texts([event for event, _ in await EventStore(database).events("s")]) == []


@pytest.mark.parametrize("method", ["renamed over", "copied over"])
async def test_a_sqlite_file_replaced_under_a_running_server_stops_it(tmp_path: Path, method: str) -> None:
    path = tmp_path / "bullpen.db"
    async with Database.open(f"sqlite:///{path}", owner=FIRST, lease=NO_HEARTBEAT) as database:
        log = await SessionLog.create(EventStore(database), "s", [Draft(SESSION_START)])
        with (
            closing(sqlite3.connect(path)) as source,
            closing(sqlite3.connect(tmp_path / "backup.db")) as copy,
        ):
            source.backup(copy)
        if method == "renamed over":
            os.replace(tmp_path / "backup.db", path)
        else:
            shutil.copyfile(tmp_path / "backup.db", path)
            for side in ("bullpen.db-wal", "bullpen.db-shm"):
                (tmp_path / side).unlink()
        with pytest.raises(Unavailable, match="was replaced or removed"):
            await log.append([error_draft("into a file that is gone")])
        assert isinstance(await asyncio.wait_for(database.fence_lost, 60), DatabaseWentBack)


async def test_a_server_starts_on_a_database_that_went_back_only_with_take_over(url: str) -> None:
    owner = FenceOwner("1", "host:/first", take_over=False, newest=FencePosition(1, 7))
    async with Database.open(url, owner=FIRST):
        pass
    with pytest.raises(DatabaseWentBack, match="start it with --take-over"):
        async with Database.open(url, owner=owner):
            pass
    assert fence_row(url) == (1, 0, "1")
    async with Database.open(
        url, owner=FenceOwner("1", "host:/first", take_over=True, newest=FencePosition(1, 7))
    ):
        assert fence_row(url) == (2, 0, "1")


async def test_an_empty_database_does_not_replace_a_lost_one(url: str) -> None:
    with pytest.raises(DatabaseWentBack, match="start it with --take-over"):
        async with Database.open(
            url, owner=FenceOwner("1", "host:/first", take_over=False, newest=FencePosition(1, 7))
        ):
            pass
    async with Database.open(url, owner=SECOND):
        assert fence_row(url) == (1, 0, "2")


async def test_a_heartbeat_in_the_future_does_not_refuse_a_server(url: str) -> None:
    async with open_and_kill(url, FIRST, Lease()) as database:
        await database.write(lambda _: None)
    engine = writing_engine(url)
    with engine.begin() as connection:
        connection.execute(text("UPDATE server SET heartbeat = heartbeat + 3600000"))
    engine.dispose()
    async with Database.open(url, owner=SECOND):
        assert fence_row(url)[2] == "2"


async def test_a_database_whose_fence_is_missing_stops_the_server(database: Database) -> None:
    await database.write(lambda c: c.execute(text("DROP TABLE server")).rowcount)
    with pytest.raises(Unavailable, match="gone back in time"):
        await database.write(lambda _: None)
    assert isinstance(await asyncio.wait_for(database.fence_lost, 60), DatabaseWentBack)


async def test_a_migration_is_refused_while_another_server_uses_the_database(url: str) -> None:
    async with Database.open(url, owner=FIRST):
        for move in (schema.downgrade, schema.upgrade):
            with pytest.raises(DatabaseInUse):
                move(url, "0010", SECOND)
        assert schema.current(url) == schema.HEAD
    schema.downgrade(url, "0010", SECOND)
    assert schema.current(url) == "0010"
    async with Database.open(url, owner=SECOND):
        assert fence_row(url) == (1, 0, "2")


def test_a_copied_data_directory_has_another_identity(tmp_path: Path) -> None:
    home = tmp_path / "home"
    identity = read_identity(home, take_over=False)
    assert read_identity(home, take_over=False) == identity
    shutil.copytree(home, tmp_path / "copy")
    assert read_identity(tmp_path / "copy", take_over=False).id != identity.id


def test_a_loss_is_recorded_until_the_database_is_claimed_again(tmp_path: Path) -> None:
    identity = read_identity(tmp_path, take_over=False)
    note_loss(tmp_path, FencePosition(3, 14))
    assert read_identity(tmp_path, take_over=False).newest == FencePosition(3, 14)
    forget_loss(tmp_path)
    assert read_identity(tmp_path, take_over=False) == identity
