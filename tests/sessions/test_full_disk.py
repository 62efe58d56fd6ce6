"""A full disk: the changes that the server makes on its own wait for free space, and it keeps running."""

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
from bullpen.sessions import idle_reaper, presence, purging
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

SHORT_SECONDS = 0.1

LogEntries = list[MutableMapping[str, Any]]


@pytest.fixture
async def closed_server(tmp_path: Path, disk: Disk) -> AsyncIterator[ServerWithoutWeb]:
    """Put the database on a disk that can be filled. A session ends after half a second without activity."""
    url = f"sqlite:///{disk.path}/bullpen.db"
    server = ServerWithoutWeb(tmp_path, idle_seconds=0.5, BULLPEN_DATABASE_URL=url)
    server.define_agent()
    yield server
    await asyncio.to_thread(end_processes_of, server.home)


@pytest.fixture(autouse=True)
def short_intervals(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(idle_reaper, "RETRY_SECONDS", SHORT_SECONDS)
    monkeypatch.setattr(presence, "RETRY_SECONDS", SHORT_SECONDS)
    monkeypatch.setattr(purging, "RETRY_SECONDS", SHORT_SECONDS)
    with shortened(viewer_grace_after_leave=SHORT_SECONDS):
        yield


async def fill(local_server: ServerWithoutWeb, disk: Disk) -> Session:
    """Fill the disk until an append is refused, and return the session that was used for it."""
    filler = await local_server.session()
    disk.fill()
    with pytest.raises(StorageFull):
        while True:
            await filler.log.append([error_draft("x" * 4000)])
    return filler


async def exhaust(local_server: ServerWithoutWeb) -> None:
    """Fill the disk until the smallest write is refused."""
    database = local_server.sessions.store.database
    with pytest.raises(StorageFull):
        for n in count():
            row = {"key": "filler", "value": str(n)}
            await database.write(partial(upsert_rows, table=settings, rows=[row]), patient=True)


async def wait_for_space(session: Session) -> None:
    """Wait until the session accepts an append."""
    async with asyncio.timeout(60):
        while True:
            with suppress(StorageFull):
                await session.log.append([error_draft("there is space")])
                return
            await asyncio.sleep(0.01)


@pytest.fixture
def log_entries() -> Iterator[LogEntries]:
    with capture_logs() as entries:
        yield entries


async def wait_for_retry(log_entries: LogEntries, event: str) -> None:
    """Wait until a failed attempt and its failed retry have been logged."""
    async with asyncio.timeout(60):
        while sum(each["event"] == event for each in log_entries) < 2:
            await asyncio.sleep(0.01)


async def test_an_idle_session_is_ended_when_the_disk_has_space_again(
    local_server: ServerWithoutWeb, disk: Disk, log_entries: LogEntries
) -> None:
    session = await local_server.session("scripted")
    await until(session, lambda s: primary_agent(s).state is WorkerState.ACTIVE)
    await fill(local_server, disk)
    await wait_for_retry(log_entries, "idle for too long")
    assert session.snapshot.status is SessionStatus.ACTIVE
    disk.free()
    await until(session, lambda s: s.end_reason == "idle_timeout")
    assert await local_server.session()


async def test_a_terminate_session_without_viewers_is_ended_when_the_disk_has_space_again(
    local_server: ServerWithoutWeb, disk: Disk, log_entries: LogEntries
) -> None:
    session = await local_server.session(on_last_disconnect="terminate")
    async with background_tasks() as tasks:
        viewers = ViewerPresence(tasks)
        await fill(local_server, disk)
        viewers.schedule_early_end(session)
        await wait_for_retry(log_entries, "the last viewer left")
        assert session.snapshot.status is SessionStatus.ACTIVE
        disk.free()
        await until(session, lambda s: s.end_reason == "last_disconnect")


async def test_a_viewer_that_returns_while_the_disk_is_full_keeps_the_session(
    local_server: ServerWithoutWeb, disk: Disk, log_entries: LogEntries
) -> None:
    session = await local_server.session(on_last_disconnect="terminate")
    async with background_tasks() as tasks:
        viewers = ViewerPresence(tasks)
        filler = await fill(local_server, disk)
        viewers.schedule_early_end(session)
        await wait_for_retry(log_entries, "the last viewer left")
        with viewers.viewing(session):
            disk.free()
            await wait_for_space(filler)
            await asyncio.sleep(3 * SHORT_SECONDS)
            assert session.snapshot.status is SessionStatus.ACTIVE


async def test_a_message_is_titled_with_its_first_words_when_no_directory_can_be_created(
    local_server: ServerWithoutWeb, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    local_server.define_agent("titled", titleCommand=["/bin/echo", "a title of the agent's own {prompt}"])
    session = await local_server.session("titled")
    await send_prompt(session, "[[wait_cancel]]")
    await until(session, lambda s: primary_agent(s).activity is Activity.ACTIVE)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    await send_prompt(session, "some words of which a title is made, and then many more of them " * 5)
    snapshot = await until(session, lambda s: s.queue.items and s.queue.items[-1].title)
    assert (snapshot.queue.items[-1].title or "").startswith("some words of which")


def recording_directory(local_server: ServerWithoutWeb, session: Session) -> Path:
    return local_server.sessions.services.recordings.directory / session.id


@pytest.fixture
async def plain_server(tmp_path: Path) -> AsyncIterator[ServerWithoutWeb]:
    server = ServerWithoutWeb(tmp_path)
    yield server
    await asyncio.to_thread(end_processes_of, server.home)


async def ended_session(local_server: ServerWithoutWeb) -> Session:
    """Create a session that has ended and has a recording."""
    session = await local_server.session()
    await session.log.append([error_draft("x" * 4000) for _ in range(500)])
    await session.end(SessionStatus.COMPLETED, "user_request")
    wires = await local_server.sessions.store.encoded_events(session.id, limit=100)
    local_server.sessions.services.recordings.append(session.id, wires)
    return session


@pytest.mark.skipif("tiny" not in DISK_KINDS, reason="mounting needs root")
async def test_a_purge_frees_space_on_a_full_disk(tmp_path: Path) -> None:
    with tiny_disk(tmp_path) as disk:
        async with ServerWithoutWeb(tmp_path).open() as local_server:
            session = await ended_session(local_server)
            await fill(local_server, disk)
            await local_server.sessions.purge(session.id)
            with pytest.raises(NotFound):
                await local_server.sessions.get(session.id)
            assert await local_server.sessions.store.unfinished_purges() == {}
            assert not recording_directory(local_server, session).exists()
        await asyncio.to_thread(end_processes_of, local_server.home)


async def test_a_purge_that_the_disk_refuses_changes_nothing(plain_server: ServerWithoutWeb) -> None:
    async with plain_server.open() as local_server:
        session = await ended_session(local_server)
        with limited_disk(local_server.home) as disk:
            filler = await fill(local_server, disk)
            await exhaust(local_server)
            with pytest.raises(StorageFull):
                await local_server.sessions.purge(session.id)
            assert (recording_directory(local_server, session) / "events.jsonl").exists()
            assert not session.log.closed
            assert await local_server.sessions.get(session.id) is session
        await wait_for_space(filler)
        await local_server.sessions.purge(session.id)
        assert not recording_directory(local_server, session).exists()


async def test_a_server_starts_on_a_full_disk_and_finishes_a_purge_later(
    plain_server: ServerWithoutWeb, log_entries: LogEntries
) -> None:
    with limited_disk(plain_server.home) as disk:
        async with plain_server.open() as local_server:
            session = await ended_session(local_server)
            await local_server.sessions.store.hide(session.id)
            await fill(local_server, disk)
        async with plain_server.open() as local_server:
            await wait_for_retry(log_entries, "a purged session could not be deleted yet")
            assert not recording_directory(
                local_server, session
            ).exists()  # deleting files needs no free space
            disk.free()
            async with asyncio.timeout(60):
                while await local_server.sessions.store.unfinished_purges():
                    await asyncio.sleep(0.01)


async def test_a_purge_is_finished_later_while_a_process_is_still_ending(
    plain_server: ServerWithoutWeb,
) -> None:
    """A process of an earlier run may still be ending."""
    plain_server.define_agent(
        "stubborn", {"agent": {"ignore_term": True, "ignore_eof": True, "on_cancel": "ignore"}}
    )
    plain_server.set(BULLPEN_CANCEL_GRACE="1")
    with shortened(stop=1.5):
        async with plain_server.open() as local_server:
            session = await local_server.session()
            worker = await local_server.agent(session, "stubborn")
            await send_prompt(session, "[[wait_cancel]] [[silent]]")
            await session.cancel_turn(worker.id, "ada")
            await until(session, lambda s: s.worker(worker.id).state is WorkerState.FAILED)
            await session.end(SessionStatus.CANCELLED, "cancelled")
            await local_server.sessions.purge(session.id)
            with pytest.raises(NotFound):
                await local_server.sessions.get(session.id)
            async with asyncio.timeout(60):
                while await local_server.sessions.store.unfinished_purges():
                    await asyncio.sleep(0.01)
            assert not (local_server.home / "spool" / worker.id).exists()
