"""Group commit, counted in transactions and statements, not in time; and nobody spoils another's work."""

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
def held(database: Database) -> Iterator[None]:
    """Keeps the writer busy for the block, so that what is given meanwhile gathers."""
    go_on = threading.Event()
    holding = asyncio.ensure_future(database.write(lambda _: go_on.wait(30)))
    try:
        yield
    finally:
        go_on.set()
        assert not holding.cancelled()


async def test_what_waits_is_committed_together(store: EventStore) -> None:
    writer = store.database.writer
    with held(store.database):
        await asyncio.sleep(0)
        before = writer.transactions.committed
        waiting = [store.commit(new_session(f"s{n}")) for n in range(200)]
    await asyncio.gather(*waiting)
    assert writer.transactions.committed - before == 2  # the held one, and all 200 others
    assert (await RecordStore(store.database).list_sessions()).total == 200


async def test_a_group_is_one_statement_for_each_table(store: EventStore) -> None:
    statements: list[str] = []

    @event.listens_for(store.database.writer.transactions.connection, "before_cursor_execute")
    def note(_c: object, _cursor: object, statement: str, *_rest: object) -> None:
        statements.append(statement.split("(", maxsplit=1)[0].strip())

    with held(store.database):
        await asyncio.sleep(0)
        appends = [new_session_with_worker(f"s{n}", f"w{n}") for n in range(50)]
        waiting = [store.commit(append) for append in appends]
    await asyncio.gather(*waiting)
    inserted = [statement for statement in statements if statement.startswith("INSERT")]
    assert sorted(inserted) == ["INSERT INTO events", "INSERT INTO sessions", "INSERT INTO workers"]


async def test_a_lone_append_is_committed_at_once(store: EventStore) -> None:
    before = store.database.writer.transactions.committed
    await store.commit(new_session())
    assert store.database.writer.transactions.committed == before + 1


async def test_a_group_does_not_grow_without_limit(store: EventStore) -> None:
    with held(store.database):
        await asyncio.sleep(0)
        before = store.database.writer.transactions.committed
        waiting = [store.commit(new_session(f"s{n}")) for n in range(MAX_GROUP_JOBS + 1)]
    await asyncio.gather(*waiting)
    assert store.database.writer.transactions.committed - before == 3


async def test_a_group_keeps_its_turn_among_other_writes(store: EventStore) -> None:
    seen: list[int] = []

    def count(connection: Connection) -> None:
        seen.append(connection.exec_driver_sql("SELECT count(*) FROM sessions").scalar_one())

    with held(store.database):
        await asyncio.sleep(0)
        waiting: list[asyncio.Future[object]] = []
        for n in range(3):
            waiting.append(store.commit(new_session(f"s{n}")))  # type: ignore[arg-type]
            waiting.append(asyncio.ensure_future(store.database.write(count)))
            await asyncio.sleep(0)
    await asyncio.gather(*waiting)
    assert seen == [1, 2, 3]


async def test_one_bad_append_does_not_spoil_its_group(store: EventStore) -> None:
    first = new_session("a")
    await store.commit(first)
    await store.commit(append_to(first.snapshot, error_draft("number two")))
    with held(store.database):
        await asyncio.sleep(0)
        doubled = store.commit(append_to(first.snapshot, error_draft("number two again")))
        others = [store.commit(new_session(f"s{n}")) for n in range(10)]
    results = await asyncio.gather(doubled, *others, return_exceptions=True)
    assert isinstance(results[0], IntegrityError)
    assert results[1:] == [()] * 10


async def test_several_appends_of_one_session_in_a_group_leave_its_last_row(store: EventStore) -> None:
    with held(store.database):
        await asyncio.sleep(0)
        append = new_session_with_worker()
        waiting = [store.commit(append)]
        for n in range(5):
            append = append_to(append.snapshot, error_draft(str(n), "w"))
            waiting.append(store.commit(append))
    await asyncio.gather(*waiting)
    page = await RecordStore(store.database).list_sessions()
    assert page.sessions[0]["lastSeq"] == append.snapshot.last_seq == 7
    assert await store.load("s") == append.snapshot


class Forgetful:
    """A kind whose results are not one for each item."""

    together = True

    def write(self, connection: Connection, items: Sequence[object]) -> Sequence[object]:
        return []


async def test_a_mistake_of_ours_is_told_to_who_waits_and_the_writer_goes_on(store: EventStore) -> None:
    async with asyncio.timeout(30):
        with capture_logs() as told, pytest.raises(ValueError, match="zip"):
            await store.database.writer.submit(Forgetful(), "item")
        await store.commit(new_session())
    assert [each["log_level"] for each in told] == ["error"]


async def test_a_room_nobody_can_look_into_is_looked_into_again(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    room, looks = database.writer.availability, threading.Semaphore(0)

    def probe() -> None:
        looks.release()
        raise IntegrityError("probe", {}, ValueError("a broken table"))

    monkeypatch.setattr(room, "_probe", probe)
    room.note_refusal(StorageFull("no room"))
    with pytest.raises(StorageFull):
        await database.write(lambda _: None)
    async with asyncio.timeout(30):
        for _ in range(2):
            await asyncio.to_thread(looks.acquire)
        with pytest.raises(StorageFull):
            await database.write(lambda _: None)


async def test_nothing_is_taken_after_closing(url: str) -> None:
    async with Database.open(url) as database:
        store = EventStore(database)
        await store.commit(new_session())
    with pytest.raises(Unavailable, match="is stopping"):
        await store.commit(append_to(Snapshot(id="t"), Draft(SESSION_START)))


async def test_no_thread_is_left_after_closing(url: str) -> None:
    before = {thread.ident for thread in threading.enumerate()}
    async with Database.open(url) as database:
        await EventStore(database).commit(new_session())
        await RecordStore(database).list_sessions()
    after = [thread.name for thread in threading.enumerate() if thread.ident not in before]
    assert not [name for name in after if name.startswith("bullpen")]
