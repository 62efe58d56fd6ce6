"""The database: one writer, several readers, private files, and errors in one sentence."""

import asyncio
import os
import sqlite3
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from bullpen.domain.errors import Conflict, Invalid, RemoteFault
from bullpen.store.database import Database
from bullpen.store.records import RecordStore


def sqlite_url(path: Path) -> str:
    return f"sqlite:///{path}"


async def test_a_read_sees_the_write_before_it(database: Database) -> None:
    records = RecordStore(database)
    await records.set_setting("colour", {"name": "blue"})
    assert await records.setting("colour") == {"name": "blue"}


async def test_a_write_that_fails_stores_nothing(database: Database) -> None:
    def insert_and_fail(connection: Connection) -> None:
        connection.execute(text("INSERT INTO settings (key, value) VALUES ('a', '1')"))
        raise Conflict("refused")

    with pytest.raises(Conflict, match="refused"):
        await database.write(insert_and_fail)
    assert await RecordStore(database).setting("a") is None


async def test_a_reader_cannot_write(database: Database) -> None:
    with pytest.raises(DBAPIError):
        await database.read(lambda c: c.execute(text("DELETE FROM settings")).rowcount)


async def test_a_read_sees_one_state_of_the_database(database: Database) -> None:
    records = RecordStore(database)
    await records.set_setting("n", 1)
    loop, first_read, written = asyncio.get_running_loop(), asyncio.Event(), asyncio.Event()

    def read_twice(connection: Connection) -> list[str]:
        query = text("SELECT value FROM settings WHERE key = 'n'")
        first = connection.execute(query).scalar_one()
        loop.call_soon_threadsafe(first_read.set)
        asyncio.run_coroutine_threadsafe(written.wait(), loop).result(10)
        return [first, connection.execute(query).scalar_one()]

    async with asyncio.timeout(60), asyncio.TaskGroup() as tasks:
        reading = tasks.create_task(database.read(read_twice))
        await first_read.wait()
        await records.set_setting("n", 2)
        written.set()
    assert reading.result() == ["1", "1"]
    assert await records.setting("n") == 2


async def test_writes_run_in_the_order_they_were_given(database: Database) -> None:
    order: list[int] = []

    def append(n: int) -> Callable[[Connection], None]:
        return lambda _: order.append(n)

    await asyncio.gather(*(database.write(append(n)) for n in range(50)))
    assert order == list(range(50))


async def test_a_cancelled_write_still_happens_in_its_turn(database: Database) -> None:
    records = RecordStore(database)
    task = asyncio.ensure_future(records.set_setting("kept", True))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await database.write(lambda _: None)
    assert await records.setting("kept") is True


async def test_closing_finishes_the_waiting_writes(url: str) -> None:
    async with Database.open(url) as database:
        records = RecordStore(database)
        tasks = [asyncio.ensure_future(records.set_setting(f"k{n}", n)) for n in range(20)]
        await asyncio.sleep(0)
    await asyncio.gather(*tasks)
    async with Database.open(url) as database:
        assert await RecordStore(database).setting("k19") == 19


async def test_all_files_are_private_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        async with Database.open(sqlite_url(tmp_path / "bullpen.db")) as database:
            await RecordStore(database).set_setting("a", 1)
            modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    finally:
        os.umask(before)
    assert set(modes) >= {"bullpen.db", "bullpen.db-wal", "bullpen.db-shm", "bullpen.db.ballast"}
    assert set(modes.values()) == {0o600}


async def test_a_database_file_that_others_could_read_is_made_private(tmp_path: Path) -> None:
    path = tmp_path / "bullpen.db"
    path.touch(mode=0o644)
    path.chmod(0o644)
    async with Database.open(sqlite_url(path)):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


async def test_a_planted_symlink_is_not_followed(tmp_path: Path) -> None:
    target = tmp_path / "elsewhere"
    (tmp_path / "bullpen.db").symlink_to(target)
    with pytest.raises(Invalid, match="cannot open the database"):
        async with Database.open(sqlite_url(tmp_path / "bullpen.db")):
            pass
    assert not target.exists()


async def test_a_planted_symlink_for_the_ballast_is_not_followed(tmp_path: Path) -> None:
    target = tmp_path / "precious"
    target.write_text("precious")
    (tmp_path / "bullpen.db.ballast").symlink_to(target)
    async with Database.open(sqlite_url(tmp_path / "bullpen.db")):
        assert target.read_text() == "precious"


async def test_sqlite_is_durable_at_every_commit(tmp_path: Path) -> None:
    async with Database.open(sqlite_url(tmp_path / "bullpen.db")) as database:

        def pragmas(connection: Connection) -> list[object]:
            names = ("journal_mode", "synchronous", "foreign_keys")
            return [connection.execute(text(f"PRAGMA {name}")).scalar() for name in names]

        assert await database.write(pragmas) == ["wal", 2, 1]


async def test_a_file_that_is_no_database_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "bullpen.db"
    path.write_bytes(b"this is a text file, not a database" * 100)
    with pytest.raises(RemoteFault, match="file is not a database"):
        async with Database.open(sqlite_url(path)):
            pass


async def test_a_database_that_cannot_be_reached_is_reported(tmp_path: Path) -> None:
    with pytest.raises(RemoteFault, match="cannot open the database"):
        async with Database.open(f"postgresql+psycopg:///x?host={tmp_path}"):
            pass


@pytest.mark.parametrize(
    "url",
    ["", "bullpen.db", "mysql://localhost/x", "sqlite://", "sqlite:///:memory:", "postgresql://localhost/x"],
)
async def test_an_unsupported_database_url_is_refused(url: str) -> None:
    with pytest.raises(Invalid):
        async with Database.open(url):
            pass


async def test_a_write_lock_of_another_program_does_not_block_readers(tmp_path: Path) -> None:
    path = tmp_path / "bullpen.db"
    async with Database.open(sqlite_url(path)) as database:
        await RecordStore(database).set_setting("a", 1)
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        assert await RecordStore(database).setting("a") == 1
        other.close()
