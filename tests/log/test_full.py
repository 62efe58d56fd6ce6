"""A full or failing disk: commands are refused, and patient changes wait and are stored once."""

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


async def wait_until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.01)


async def stored_texts(store: EventStore, session_id: str = "s") -> list[str]:
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
    """Fill the disk, append until a command is refused, and return the texts that were accepted."""
    disk.fill()
    accepted: list[str] = []
    while True:
        text = f"command {len(accepted)} " + "x" * 4000
        try:
            await log.append([error_draft(text)])
        except StorageFull:
            return accepted
        accepted.append(text)


async def test_a_command_on_a_full_disk_is_refused_and_not_stored(
    log: SessionLog, store: EventStore, disk: Disk
) -> None:
    accepted = await exhaust(log, disk)
    before = log.snapshot
    assert store.full
    with pytest.raises(StorageFull, match=r"full|I/O error"):
        await log.append([error_draft("refused")])
    assert log.snapshot is before
    assert await stored_texts(store) == accepted


async def test_commands_are_stored_again_when_the_disk_has_space_without_a_restart(
    log: SessionLog, store: EventStore, disk: Disk
) -> None:
    accepted = await exhaust(log, disk)
    disk.free()
    await wait_until(lambda: not store.full)
    await log.append([error_draft("after")])
    assert await stored_texts(store) == [*accepted, "after"]


async def test_patient_changes_wait_for_space_and_are_stored_once_and_in_order(
    log: SessionLog, store: EventStore, disk: Disk
) -> None:
    accepted = await exhaust(log, disk)
    heavy = ["y" * (2 * BALLAST) + str(n) for n in range(2)]  # larger than the ballast
    waiting = [asyncio.ensure_future(log.append([error_draft(text)], patient=True)) for text in heavy]
    refused = store.database.writer.transactions.refused
    await wait_until(
        lambda: store.database.writer.transactions.refused > refused + 1
    )  # the first attempt and a retry were refused
    assert not any(each.done() for each in waiting)
    disk.free()
    async with asyncio.timeout(30):
        await asyncio.gather(*waiting)
    assert await stored_texts(store) == [*accepted, *heavy]


async def test_commands_are_refused_while_a_patient_change_waits(
    log: SessionLog, store: EventStore, disk: Disk
) -> None:
    await exhaust(log, disk)
    patient = asyncio.ensure_future(log.append([error_draft("z" * (2 * BALLAST))], patient=True))
    command = asyncio.ensure_future(log.append([error_draft("command")]))
    with pytest.raises(StorageFull):
        async with asyncio.timeout(30):
            await command
    refused = store.database.writer.transactions.refused
    await wait_until(lambda: store.database.writer.transactions.refused > refused)
    with pytest.raises(StorageFull):
        await log.append([error_draft("and another")])
    assert not patient.done()
    disk.free()
    async with asyncio.timeout(30):
        await patient


async def test_a_patient_change_is_stored_although_its_caller_was_cancelled(
    log: SessionLog, store: EventStore, disk: Disk
) -> None:
    accepted = await exhaust(log, disk)
    text = "w" * (2 * BALLAST)
    patient = asyncio.ensure_future(log.append([error_draft(text)], patient=True))
    refused = store.database.writer.transactions.refused
    await wait_until(lambda: store.database.writer.transactions.refused > refused)
    patient.cancel()
    disk.free()
    await wait_until(lambda: log.head == len(accepted) + 2)
    assert await stored_texts(store) == [*accepted, text]


async def test_the_ballast_is_deleted_on_a_full_disk_and_created_again_later(
    log: SessionLog, store: EventStore, disk: Disk
) -> None:
    ballast = disk.path / "bullpen.db.ballast"
    assert ballast.stat().st_size == BALLAST
    await exhaust(log, disk)
    assert not ballast.exists()
    disk.free()
    await wait_until(lambda: not store.full)
    assert ballast.stat().st_size == BALLAST


async def test_the_server_waits_for_a_disk_on_which_the_ballast_cannot_be_deleted(
    log: SessionLog, store: EventStore, disk: Disk
) -> None:
    """The ballast can neither be deleted nor created again, as on a disk that became read-only."""
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
    await wait_until(lambda: not store.full)
    await log.append([error_draft("after")])
    assert await stored_texts(store) == [*accepted, "after"]


async def test_reads_work_while_the_disk_is_full(log: SessionLog, store: EventStore, disk: Disk) -> None:
    accepted = await exhaust(log, disk)
    page = await RecordStore(store.database).list_sessions()
    assert page.sessions[0].last_seq == len(accepted) + 1
    assert await store.load("s") == log.snapshot


async def test_a_server_can_start_on_a_full_disk(disk: Disk) -> None:
    url = f"sqlite:///{disk.path}/bullpen.db"
    async with Database.open(url, BALLAST) as database:
        log = await SessionLog.create(EventStore(database), "s", [Draft(SESSION_START)])
        accepted = await exhaust(log, disk)
    del log
    async with Database.open(url, BALLAST) as database:
        store = EventStore(database)
        assert await stored_texts(store) == accepted
        log = await SessionLog.open(store, "s")
        waiting = asyncio.ensure_future(log.append([error_draft("v" * (2 * BALLAST))], patient=True))
        refused = database.writer.transactions.refused
        await wait_until(lambda: database.writer.transactions.refused > refused)
        disk.free()
        async with asyncio.timeout(30):
            await waiting


@pytest.mark.skipif("tiny" not in DISK_KINDS, reason="mounting needs root")
async def test_a_server_that_starts_on_a_filled_disk_uses_the_ballast(tmp_path: Path) -> None:
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
            await wait_until(lambda: not database.full)
            assert ballast.exists()
            assert await stored_texts(EventStore(database)) == ["what happened"]


async def test_a_small_append_does_not_fail_because_of_a_large_one(store: EventStore, disk: Disk) -> None:
    """On one kind of disk both appends fail. On the other the small one fits and is stored alone."""
    logs = [await SessionLog.create(store, name, [Draft(SESSION_START)]) for name in "ab"]
    large = asyncio.ensure_future(logs[0].append([error_draft("u" * (16 * BALLAST))], patient=True))
    small = asyncio.ensure_future(logs[1].append([error_draft("small")], patient=True))
    async with asyncio.timeout(30):
        await small
    disk.free()
    large.cancel()
    assert await stored_texts(store, "b") == ["small"]


async def test_patient_changes_wait_for_a_database_server_that_stopped(cluster: Cluster) -> None:
    async with Database.open(cluster.new_database()) as database:
        store = EventStore(database)
        log = await SessionLog.create(store, "s", [Draft(SESSION_START)])
        cluster.stop()
        with pytest.raises(Unavailable, match=r"the PostgreSQL database test_.* cannot be reached"):
            await log.append([error_draft("refused")])
        patient = asyncio.ensure_future(log.append([error_draft("patient")], patient=True))
        refused = database.writer.transactions.refused
        await wait_until(lambda: database.writer.transactions.refused > refused)
        assert (store.full, type(store.refusal)) == (False, DatabaseUnreachable)
        cluster.start()
        async with asyncio.timeout(30):
            await patient
        await wait_until(lambda: store.refusal is None)
        cluster.stop()
        cluster.start()
        await log.append([error_draft("after")])  # the lost connection is replaced without a refusal
        assert await stored_texts(store) == ["patient", "after"]
