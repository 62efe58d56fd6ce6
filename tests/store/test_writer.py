"""Group commit: few transactions and statements, and a write that fails does not affect others."""

import asyncio
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest
from sqlalchemy import Connection, event
from sqlalchemy.exc import IntegrityError
from structlog.testing import capture_logs

from bullpen.domain.errors import StorageFull, Unavailable
from bullpen.domain.events import Draft
from bullpen.domain.snapshot import Snapshot
from bullpen.store.database import Database
from bullpen.store.events import EventStore
from bullpen.store.records import RecordStore
from bullpen.store.writer import MAX_GROUP_JOBS
from support.sample_events import SESSION_START, append_to, error_draft, new_session, new_session_with_worker


@contextmanager
def busy_writer(database: Database) -> Iterator[None]:
    """Keep the writer busy during the block, so that writes that are submitted meanwhile form a group."""
    may_continue = threading.Event()
    blocking = asyncio.ensure_future(database.write(lambda _: may_continue.wait(30)))
    try:
        yield
    finally:
        may_continue.set()
        assert not blocking.cancelled()


async def test_waiting_appends_are_committed_together(store: EventStore) -> None:
    writer = store.database.writer
    with busy_writer(store.database):
        await asyncio.sleep(0)
        before = writer.transactions.committed
        waiting = [store.commit(new_session(f"s{n}")) for n in range(200)]
    await asyncio.gather(*waiting)
    assert writer.transactions.committed - before == 2  # the blocking write, and one for all 200 appends
    assert (await RecordStore(store.database).list_sessions()).total == 200


async def test_a_group_uses_one_statement_per_table(store: EventStore) -> None:
    statements: list[str] = []

    @event.listens_for(store.database.writer.transactions.connection, "before_cursor_execute")
    def record(_c: object, _cursor: object, statement: str, *_rest: object) -> None:
        statements.append(statement.split("(", maxsplit=1)[0].strip())

    with busy_writer(store.database):
        await asyncio.sleep(0)
        appends = [new_session_with_worker(f"s{n}", f"w{n}") for n in range(50)]
        waiting = [store.commit(append) for append in appends]
    await asyncio.gather(*waiting)
    inserted = [statement for statement in statements if statement.startswith("INSERT")]
    assert sorted(inserted) == ["INSERT INTO events", "INSERT INTO sessions", "INSERT INTO workers"]


async def test_a_single_append_is_committed_immediately(store: EventStore) -> None:
    before = store.database.writer.transactions.committed
    await store.commit(new_session())
    assert store.database.writer.transactions.committed == before + 1


async def test_the_size_of_a_group_is_limited(store: EventStore) -> None:
    with busy_writer(store.database):
        await asyncio.sleep(0)
        before = store.database.writer.transactions.committed
        waiting = [store.commit(new_session(f"s{n}")) for n in range(MAX_GROUP_JOBS + 1)]
    await asyncio.gather(*waiting)
    assert store.database.writer.transactions.committed - before == 3


async def test_appends_and_other_writes_keep_their_order(store: EventStore) -> None:
    counts: list[int] = []

    def count(connection: Connection) -> None:
        counts.append(connection.exec_driver_sql("SELECT count(*) FROM sessions").scalar_one())

    with busy_writer(store.database):
        await asyncio.sleep(0)
        waiting: list[asyncio.Future[object]] = []
        for n in range(3):
            waiting.append(store.commit(new_session(f"s{n}")))  # type: ignore[arg-type]
            waiting.append(asyncio.ensure_future(store.database.write(count)))
            await asyncio.sleep(0)
    await asyncio.gather(*waiting)
    assert counts == [1, 2, 3]


async def test_an_append_that_fails_does_not_fail_its_group(store: EventStore) -> None:
    first = new_session("a")
    await store.commit(first)
    await store.commit(append_to(first.snapshot, error_draft("number two")))
    with busy_writer(store.database):
        await asyncio.sleep(0)
        doubled = store.commit(append_to(first.snapshot, error_draft("number two again")))
        others = [store.commit(new_session(f"s{n}")) for n in range(10)]
    results = await asyncio.gather(doubled, *others, return_exceptions=True)
    assert isinstance(results[0], IntegrityError)
    assert results[1:] == [()] * 10


async def test_several_appends_of_one_session_in_a_group_store_its_last_state(store: EventStore) -> None:
    with busy_writer(store.database):
        await asyncio.sleep(0)
        append = new_session_with_worker()
        waiting = [store.commit(append)]
        for n in range(5):
            append = append_to(append.snapshot, error_draft(str(n), "w"))
            waiting.append(store.commit(append))
    await asyncio.gather(*waiting)
    page = await RecordStore(store.database).list_sessions()
    assert page.sessions[0].last_seq == append.snapshot.last_seq == 7
    assert await store.load("s") == append.snapshot


class WrongResultCount:
    """A kind of write that does not return one result for each item."""

    together = True

    def write(self, connection: Connection, items: Sequence[object]) -> Sequence[object]:
        return []


async def test_an_internal_error_is_logged_and_raised_to_the_caller_and_the_writer_continues(
    store: EventStore,
) -> None:
    async with asyncio.timeout(30):
        with capture_logs() as log_entries, pytest.raises(ValueError, match="zip"):
            await store.database.writer.submit(WrongResultCount(), "item")
        await store.commit(new_session())
    assert [each["log_level"] for each in log_entries] == ["error"]


async def test_a_probe_for_free_space_that_fails_is_repeated(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    availability, probes = database.writer.availability, threading.Semaphore(0)

    def probe() -> None:
        probes.release()
        raise IntegrityError("probe", {}, ValueError("a broken table"))

    monkeypatch.setattr(availability, "_probe", probe)
    availability.note_refusal(StorageFull("no space"))
    with pytest.raises(StorageFull):
        await database.write(lambda _: None)
    async with asyncio.timeout(30):
        for _ in range(2):
            await asyncio.to_thread(probes.acquire)
        with pytest.raises(StorageFull):
            await database.write(lambda _: None)


async def test_writes_after_closing_are_refused(url: str) -> None:
    async with Database.open(url) as database:
        store = EventStore(database)
        await store.commit(new_session())
    with pytest.raises(Unavailable, match="is stopping"):
        await store.commit(append_to(Snapshot(id="t"), Draft(SESSION_START)))


async def test_no_thread_runs_after_closing(url: str) -> None:
    before = {thread.ident for thread in threading.enumerate()}
    async with Database.open(url) as database:
        await EventStore(database).commit(new_session())
        await RecordStore(database).list_sessions()
    after = [thread.name for thread in threading.enumerate() if thread.ident not in before]
    assert not [name for name in after if name.startswith("bullpen")]
