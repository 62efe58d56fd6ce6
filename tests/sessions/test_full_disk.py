"""The disk is full: what the house does by itself waits for room, and the house stands."""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Iterator, MutableMapping
from contextlib import suppress
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from bullpen.domain.errors import NotFound, StorageFull
from bullpen.domain.states import Activity, SessionStatus, WorkerState
from bullpen.sessions import presence, purging, reaper
from bullpen.sessions.presence import ViewerPresence
from bullpen.sessions.session import Session
from bullpen.sessions.tasks import background_tasks
from bullpen.store.statements import upsert_rows
from bullpen.store.tables import settings
from support.disks import DISK_KINDS, Disk, disk, limited_disk, tiny_disk
from support.intervals import shortened
from support.sample_events import error_draft
from support.server import end_processes_of
from support.server_without_web import ServerWithoutWeb, primary_agent, send_prompt, until

__all__ = ["disk"]

SOON = 0.1  # seconds

Told = list[MutableMapping[str, Any]]


@pytest.fixture
async def closed_house(tmp_path: Path, disk: Disk) -> AsyncIterator[ServerWithoutWeb]:
    """With its database on a disk that can be filled; an agent is idle after half a second."""
    url = f"sqlite:///{disk.path}/bullpen.db"
    this = ServerWithoutWeb(tmp_path, idle_seconds=0.5, BULLPEN_DATABASE_URL=url)
    this.define_agent()
    yield this
    await asyncio.to_thread(end_processes_of, this.home)


@pytest.fixture(autouse=True)
def impatience(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(reaper, "RETRY_SECONDS", SOON)
    monkeypatch.setattr(presence, "RETRY_SECONDS", SOON)
    monkeypatch.setattr(purging, "RETRY_SECONDS", SOON)
    with shortened(viewer_grace_after_leave=SOON):
        yield


async def fill(house: ServerWithoutWeb, disk: Disk) -> Session:
    """Until a command is refused."""
    noise = await house.session()
    disk.fill()
    with pytest.raises(StorageFull):
        while True:
            await noise.log.append([error_draft("x" * 4000)])
    return noise


async def exhaust(house: ServerWithoutWeb) -> None:
    """Until not even the smallest write is taken."""
    database = house.sessions.store.database
    with pytest.raises(StorageFull):
        for n in count():
            row = {"key": "noise", "value": str(n)}
            await database.write(partial(upsert_rows, table=settings, rows=[row]), patient=True)


async def until_room(session: Session) -> None:
    async with asyncio.timeout(60):
        while True:
            with suppress(StorageFull):
                await session.log.append([error_draft("there is room")])
                return
            await asyncio.sleep(0.01)


@pytest.fixture
def told() -> Iterator[Told]:
    with capture_logs() as entries:
        yield entries


async def tried(told: Told, event: str) -> None:
    """Waits until it was tried in vain, and tried again."""
    async with asyncio.timeout(60):
        while sum(each["event"] == event for each in told) < 2:
            await asyncio.sleep(0.01)


async def test_an_idle_session_is_ended_once_there_is_room(
    house: ServerWithoutWeb, disk: Disk, told: Told
) -> None:
    session = await house.session("scripted")
    await until(session, lambda s: primary_agent(s).state is WorkerState.ACTIVE)
    await fill(house, disk)
    await tried(told, "idle for too long")
    assert session.snapshot.status is SessionStatus.ACTIVE
    disk.free()
    await until(session, lambda s: s.end_reason == "idle_timeout")
    assert await house.session()


async def test_a_session_nobody_looks_at_any_more_is_ended_once_there_is_room(
    house: ServerWithoutWeb, disk: Disk, told: Told
) -> None:
    session = await house.session(on_last_disconnect="terminate")
    async with background_tasks() as tasks:
        viewers = ViewerPresence(tasks)
        await fill(house, disk)
        viewers.schedule_early_end(session)
        await tried(told, "the last viewer left")
        assert session.snapshot.status is SessionStatus.ACTIVE
        disk.free()
        await until(session, lambda s: s.end_reason == "last_disconnect")


async def test_who_comes_back_while_the_disk_is_full_keeps_the_session(
    house: ServerWithoutWeb, disk: Disk, told: Told
) -> None:
    session = await house.session(on_last_disconnect="terminate")
    async with background_tasks() as tasks:
        viewers = ViewerPresence(tasks)
        noise = await fill(house, disk)
        viewers.schedule_early_end(session)
        await tried(told, "the last viewer left")
        with viewers.viewing(session):
            disk.free()
            await until_room(noise)
            await asyncio.sleep(3 * SOON)
            assert session.snapshot.status is SessionStatus.ACTIVE


async def test_a_message_gets_a_title_by_its_words_where_no_directory_can_be_made(
    house: ServerWithoutWeb, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    house.define_agent("titled", titleCommand=["/bin/echo", "a title of the agent's own {prompt}"])
    session = await house.session("titled")
    await send_prompt(session, "[[wait_cancel]]")
    await until(session, lambda s: primary_agent(s).activity is Activity.ACTIVE)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    await send_prompt(session, "some words of which a title is made, and then many more of them " * 5)
    snapshot = await until(session, lambda s: s.queue.items and s.queue.items[-1].title)
    assert (snapshot.queue.items[-1].title or "").startswith("some words of which")


def recording(house: ServerWithoutWeb, session: Session) -> Path:
    return house.sessions.services.recordings.directory / session.id


@pytest.fixture
async def plain_house(tmp_path: Path) -> AsyncIterator[ServerWithoutWeb]:
    this = ServerWithoutWeb(tmp_path)
    yield this
    await asyncio.to_thread(end_processes_of, this.home)


async def old_session(house: ServerWithoutWeb) -> Session:
    """One that has ended, with a recording."""
    session = await house.session()
    await session.log.append([error_draft("x" * 4000) for _ in range(500)])
    await session.end(SessionStatus.COMPLETED, "user_request")
    wires = await house.sessions.store.encoded_events(session.id, limit=100)
    house.sessions.services.recordings.append(session.id, wires)
    return session


@pytest.mark.skipif("tiny" not in DISK_KINDS, reason="mounting needs root")
async def test_a_purge_makes_room_on_a_full_disk(tmp_path: Path) -> None:
    with tiny_disk(tmp_path) as disk:
        async with ServerWithoutWeb(tmp_path).open() as house:
            session = await old_session(house)
            await fill(house, disk)
            await house.sessions.purge(session.id)
            with pytest.raises(NotFound):
                await house.sessions.get(session.id)
            assert await house.sessions.store.unfinished_purges() == {}
            assert not recording(house, session).exists()
        await asyncio.to_thread(end_processes_of, house.home)


async def test_a_purge_the_disk_refuses_changes_nothing(plain_house: ServerWithoutWeb) -> None:
    async with plain_house.open() as house:
        session = await old_session(house)
        with limited_disk(house.home) as disk:
            noise = await fill(house, disk)
            await exhaust(house)
            with pytest.raises(StorageFull):
                await house.sessions.purge(session.id)
            assert (recording(house, session) / "events.jsonl").exists()
            assert not session.log.closed
            assert await house.sessions.get(session.id) is session
        await until_room(noise)
        await house.sessions.purge(session.id)
        assert not recording(house, session).exists()


async def test_a_house_opens_on_a_full_disk_with_a_purge_to_finish(
    plain_house: ServerWithoutWeb, told: Told
) -> None:
    with limited_disk(plain_house.home) as disk:
        async with plain_house.open() as house:
            session = await old_session(house)
            await house.sessions.store.hide(session.id)
            await fill(house, disk)
        async with plain_house.open() as house:
            await tried(told, "a purged session could not be deleted yet")
            assert not recording(house, session).exists()  # nobody needs room for that
            disk.free()
            async with asyncio.timeout(60):
                while await house.sessions.store.unfinished_purges():
                    await asyncio.sleep(0.01)


async def test_a_purge_that_finds_the_keeper_busy_is_finished_later(plain_house: ServerWithoutWeb) -> None:
    """A process of an earlier run may still be on its way out."""
    plain_house.define_agent(
        "stubborn", {"agent": {"ignore_term": True, "ignore_eof": True, "on_cancel": "ignore"}}
    )
    plain_house.set(BULLPEN_CANCEL_GRACE="1")
    async with plain_house.open() as house:
        session = await house.session()
        worker = await house.agent(session, "stubborn")
        await send_prompt(session, "[[wait_cancel]] [[silent]]")
        await session.cancel_turn(worker.id, "a person")
        await until(session, lambda s: s.worker(worker.id).state is WorkerState.FAILED)
        await session.end(SessionStatus.CANCELLED, "cancelled")
        await house.sessions.purge(session.id)
        with pytest.raises(NotFound):
            await house.sessions.get(session.id)
        async with asyncio.timeout(60):
            while await house.sessions.store.unfinished_purges():
                await asyncio.sleep(0.01)
        assert not (house.home / "spool" / worker.id).exists()
