"""A full or failing disk: commands are refused, what agents said waits and is stored once, all is kept."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from bullpen.domain.errors import StorageFull, Unavailable
from bullpen.domain.events import Draft
from bullpen.log.log import SessionLog
from bullpen.store.database import Database
from bullpen.store.engine import DatabaseUnreachable
from bullpen.store.events import EventStore
from bullpen.store.records import RecordStore
from bullpen.store.write_availability import PROBE_SECONDS
from support.databases import Cluster
from support.disks import DISK_KINDS, Disk, disk, tiny_disk
from support.sample_events import SESSION_START, error_draft, error_texts

__all__ = ["disk"]

BALLAST = 1 << 18


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.01)


async def kept(store: EventStore, session_id: str = "s") -> list[str]:
    events = [event for event, _ in await store.events(session_id, limit=100_000)]
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    return error_texts(events)


@pytest.fixture
async def store(disk: Disk) -> AsyncIterator[EventStore]:
    async with Database.open(f"sqlite:///{disk.path}/bullpen.db", BALLAST) as database:
        yield EventStore(database)
        disk.free()


@pytest.fixture
async def log(store: EventStore) -> SessionLog:
    return await SessionLog.create(store, "s", [Draft(SESSION_START)])


async def exhaust(log: SessionLog, disk: Disk) -> list[str]:
    """Fills the disk and then the log, until a command is refused; returns what was accepted."""
    disk.fill()
    accepted: list[str] = []
    while True:
        text = f"command {len(accepted)} " + "x" * 4000
        try:
            await log.append([error_draft(text)])
        except StorageFull:
            return accepted
        accepted.append(text)


async def test_a_command_is_refused_and_nothing_of_it_is_stored(
    log: SessionLog, store: EventStore, disk: Disk
) -> None:
    accepted = await exhaust(log, disk)
    before = log.snapshot
    assert store.full
    with pytest.raises(StorageFull, match=r"full|I/O error"):
        await log.append([error_draft("refused")])
    assert log.snapshot is before
    assert await kept(store) == accepted


async def test_it_goes_on_when_there_is_room_without_a_restart(
    log: SessionLog, store: EventStore, disk: Disk
) -> None:
    accepted = await exhaust(log, disk)
    disk.free()
    await until(lambda: not store.full)
    await log.append([error_draft("after")])
    assert await kept(store) == [*accepted, "after"]


async def test_what_was_said_waits_for_room_and_is_stored_once_in_order(
    log: SessionLog, store: EventStore, disk: Disk
) -> None:
    accepted = await exhaust(log, disk)
    heavy = ["y" * (2 * BALLAST) + str(n) for n in range(2)]  # more than the reserve can take
    waiting = [asyncio.ensure_future(log.append([error_draft(text)], patient=True)) for text in heavy]
    tried = store.database.writer.transactions.refused
    await until(lambda: store.database.writer.transactions.refused > tried + 1)  # tried, and tried again
    assert not any(each.done() for each in waiting)
    disk.free()
    async with asyncio.timeout(30):
        await asyncio.gather(*waiting)
    assert await kept(store) == [*accepted, *heavy]


async def test_commands_do_not_queue_behind_what_waits(
    log: SessionLog, store: EventStore, disk: Disk
) -> None:
    await exhaust(log, disk)
    patient = asyncio.ensure_future(log.append([error_draft("z" * (2 * BALLAST))], patient=True))
    command = asyncio.ensure_future(log.append([error_draft("command")]))
    with pytest.raises(StorageFull):
        async with asyncio.timeout(30):
            await command
    tried = store.database.writer.transactions.refused
    await until(lambda: store.database.writer.transactions.refused > tried)
    with pytest.raises(StorageFull):
        await log.append([error_draft("and another")])
    assert not patient.done()
    disk.free()
    async with asyncio.timeout(30):
        await patient


async def test_a_cancelled_reader_does_not_take_its_lines_along(
    log: SessionLog, store: EventStore, disk: Disk
) -> None:
    accepted = await exhaust(log, disk)
    text = "w" * (2 * BALLAST)
    patient = asyncio.ensure_future(log.append([error_draft(text)], patient=True))
    tried = store.database.writer.transactions.refused
    await until(lambda: store.database.writer.transactions.refused > tried)
    patient.cancel()
    disk.free()
    await until(lambda: log.head == len(accepted) + 2)
    assert await kept(store) == [*accepted, text]


async def test_the_reserve_is_given_back_in_need_and_taken_again(
    log: SessionLog, store: EventStore, disk: Disk
) -> None:
    ballast = disk.path / "bullpen.db.ballast"
    assert ballast.stat().st_size == BALLAST
    await exhaust(log, disk)
    assert not ballast.exists()
    disk.free()
    await until(lambda: not store.full)
    assert ballast.stat().st_size == BALLAST


async def test_a_disk_that_gives_nothing_back_is_waited_for(
    log: SessionLog, store: EventStore, disk: Disk
) -> None:
    """As one that was remounted read-only: the reserve cannot be deleted, nor taken again."""
    ballast = disk.path / "bullpen.db.ballast"
    ballast.unlink()
    ballast.mkdir()
    async with asyncio.timeout(60):
        accepted = await exhaust(log, disk)
        with pytest.raises(StorageFull):
            await log.append([error_draft("refused")])
    disk.free()
    await asyncio.sleep(2 * PROBE_SECONDS)
    with pytest.raises(StorageFull):
        await log.append([error_draft("refused too")])
    ballast.rmdir()
    await until(lambda: not store.full)
    await log.append([error_draft("after")])
    assert await kept(store) == [*accepted, "after"]


async def test_reading_goes_on_while_the_disk_is_full(log: SessionLog, store: EventStore, disk: Disk) -> None:
    accepted = await exhaust(log, disk)
    page = await RecordStore(store.database).list_sessions()
    assert page.sessions[0]["lastSeq"] == len(accepted) + 1
    assert await store.load("s") == log.snapshot


async def test_a_server_can_start_on_a_full_disk(disk: Disk) -> None:
    url = f"sqlite:///{disk.path}/bullpen.db"
    async with Database.open(url, BALLAST) as database:
        log = await SessionLog.create(EventStore(database), "s", [Draft(SESSION_START)])
        accepted = await exhaust(log, disk)
    del log
    async with Database.open(url, BALLAST) as database:
        store = EventStore(database)
        assert await kept(store) == accepted
        log = await SessionLog.open(store, "s")
        waiting = asyncio.ensure_future(log.append([error_draft("v" * (2 * BALLAST))], patient=True))
        tried = database.writer.transactions.refused
        await until(lambda: database.writer.transactions.refused > tried)
        disk.free()
        async with asyncio.timeout(30):
            await waiting


@pytest.mark.skipif("tiny" not in DISK_KINDS, reason="mounting needs root")
async def test_a_disk_that_was_filled_meanwhile_is_opened_with_the_reserve(tmp_path: Path) -> None:
    url, ballast = f"sqlite:///{tmp_path}/bullpen.db", tmp_path / "bullpen.db.ballast"
    with tiny_disk(tmp_path) as disk:
        async with Database.open(url, BALLAST) as database:
            log = await SessionLog.create(EventStore(database), "s", [Draft(SESSION_START)])
        disk.fill()
        async with Database.open(url, BALLAST) as database:
            assert (ballast.exists(), database.full) == (False, True)
            log = await SessionLog.open(EventStore(database), "s")
            with pytest.raises(StorageFull):
                await log.append([error_draft("a command")])
            await log.append([error_draft("what happened")], patient=True)
            disk.free()
            await until(lambda: not database.full)
            assert ballast.exists()
            assert await kept(EventStore(database)) == ["what happened"]


async def test_a_small_append_is_not_spoiled_by_one_too_large(store: EventStore, disk: Disk) -> None:
    """On one disk both fail, on the other the small one fits; either way each fares as it would alone."""
    logs = [await SessionLog.create(store, name, [Draft(SESSION_START)]) for name in "ab"]
    large = asyncio.ensure_future(logs[0].append([error_draft("u" * (16 * BALLAST))], patient=True))
    small = asyncio.ensure_future(logs[1].append([error_draft("small")], patient=True))
    async with asyncio.timeout(30):
        await small
    disk.free()
    large.cancel()
    assert await kept(store, "b") == ["small"]


async def test_a_database_server_that_goes_away_is_waited_for() -> None:
    cluster = Cluster()
    cluster.start()
    try:
        async with Database.open(cluster.new_database()) as database:
            store = EventStore(database)
            log = await SessionLog.create(store, "s", [Draft(SESSION_START)])
            cluster.stop()
            with pytest.raises(Unavailable, match=r"the PostgreSQL database test_.* cannot be reached"):
                await log.append([error_draft("refused")])
            patient = asyncio.ensure_future(log.append([error_draft("patient")], patient=True))
            tried = database.writer.transactions.refused
            await until(lambda: database.writer.transactions.refused > tried)
            assert (store.full, type(store.refusal)) == (False, DatabaseUnreachable)
            cluster.start()
            async with asyncio.timeout(30):
                await patient
            await until(lambda: store.refusal is None)
            cluster.stop()
            cluster.start()
            await log.append([error_draft("after")])  # nobody had noticed, and nobody is refused
            assert await kept(store) == ["patient", "after"]
    finally:
        cluster.remove()
