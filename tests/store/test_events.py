"""Events, snapshots, messages, outbox lines and answers are read as they were stored."""

import asyncio
import hashlib
import json
import uuid
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from sqlalchemy import select, text, update
from sqlalchemy.exc import IntegrityError

from bullpen.domain.errors import NotFound
from bullpen.domain.events import Draft, Event, SessionChanged, SessionEnd, WorkerReady
from bullpen.domain.snapshot import Snapshot, fold_all
from bullpen.store import saved_snapshots
from bullpen.store.append import AlreadyAnswered, Append, ConsumedOffset, OutboxLine, StoredAnswer
from bullpen.store.events import EventStore
from bullpen.store.records import RecordStore
from bullpen.store.tables import answers, snapshots
from bullpen.wire.browser import encode_event, session_json
from support.sample_events import (
    SESSION_START,
    append_to,
    error_draft,
    error_texts,
    new_session,
    new_session_with_worker,
    worker_spawning,
)

SNAPSHOT_SCHEMA = (18, "c3a12d25a3b1f9b2")


def line(
    worker_id: str = "w", run: int = 1, make: Callable[[int], bytes] = lambda n: b"line %d" % n
) -> OutboxLine:
    return OutboxLine(worker_id, run, make)


def answer(key: str, body_hash: str = "h", body: bytes = b"{}") -> StoredAnswer:
    return StoredAnswer(key, body_hash, 201, body)


async def long_session(store: EventStore, length: int) -> Append:
    append = append_to(
        Snapshot(id="s"), Draft(SESSION_START), *(error_draft(str(n)) for n in range(2, length + 1))
    )
    await store.commit(append)
    return append


async def test_events_are_read_as_they_were_stored(store: EventStore) -> None:
    append = append_to(Snapshot(id="s"), Draft(SESSION_START), error_draft("☃ \\u0000 😀"))
    await store.commit(append)
    stored = await store.events("s")
    assert [event for event, _ in stored] == [entry.event for entry in append.entries]
    assert [wire for _, wire in stored] == [encode_event(event) for event, _ in stored]
    assert await store.encoded_events("s") == [wire for _, wire in stored]


async def test_a_range_of_events_is_read_in_order(store: EventStore) -> None:
    await long_session(store, 50)

    async def seqs(after: int, before: int | None, limit: int) -> list[int]:
        return [event.seq for event, _ in await store.events("s", after, before, limit)]

    assert await seqs(0, None, 1000) == list(range(1, 51))
    assert await seqs(10, None, 5) == [11, 12, 13, 14, 15]
    assert await seqs(10, 13, 1000) == [11, 12]
    assert await seqs(50, None, 1000) == []
    assert [event.seq for event, _ in await store.events("s", types=["session_start"])] == [1]


async def test_the_newest_events_of_a_type_are_read_in_order(store: EventStore) -> None:
    await long_session(store, 50)
    wires = await store.encoded_events("s", 0, 40, 3, ["error"], newest=True)
    assert [json.loads(wire)["seq"] for wire in wires] == [37, 38, 39]
    assert await store.events("missing") == []


async def test_a_page_of_encoded_events_ends_at_its_size_limit(store: EventStore) -> None:
    heavy = append_to(Snapshot(id="s"), Draft(SESSION_START), *(error_draft("x" * 1000) for _ in range(500)))
    await store.commit(heavy)
    page = await store.encoded_events("s", max_bytes=100_000)
    assert 90 <= len(page) <= 110
    assert page == (await store.encoded_events("s"))[: len(page)]


async def test_a_session_loads_as_the_fold_of_its_events(store: EventStore) -> None:
    first = new_session_with_worker()
    await store.commit(first)
    second = append_to(
        first.snapshot, Draft(WorkerReady(pid=5), "w", "shell"), Draft(SessionChanged(title="Z"))
    )
    await store.commit(second)
    snapshot = await store.load("s")
    assert snapshot == second.snapshot == fold_all(Snapshot(id="s"), [e for e, _ in await store.events("s")])
    assert snapshot.last_seq == 4


async def test_a_session_that_does_not_exist_is_not_found(store: EventStore) -> None:
    with pytest.raises(NotFound, match="no session ghost"):
        await store.load("ghost")


async def test_a_snapshot_is_saved_after_every_thousand_events(store: EventStore) -> None:
    async def saved_seq() -> int | None:
        return await store.database.read(lambda c: c.execute(text("SELECT seq FROM snapshots")).scalar())

    append = await long_session(store, 999)
    assert await saved_seq() is None
    append = append_to(append.snapshot, error_draft("a"), error_draft("b"))
    await store.commit(append)
    assert await saved_seq() == 1001
    append = append_to(append.snapshot, *(error_draft(str(n)) for n in range(998)))
    await store.commit(append)
    assert await saved_seq() == 1001
    append = append_to(append.snapshot, *(error_draft(str(n)) for n in range(2500)))
    await store.commit(append)
    assert await saved_seq() == append.snapshot.last_seq == 4499
    assert await store.load("s") == append.snapshot


async def test_a_load_starts_from_the_saved_snapshot(store: EventStore) -> None:
    append = await long_session(store, 1000)
    body = bytes(saved_snapshots.saved_row(append.snapshot)["body"]).replace(
        b'"A session"', b'"From the saved one"'
    )
    await store.database.write(lambda c: c.execute(update(snapshots).values(body=body)).rowcount)
    assert (await store.load("s")).title == "From the saved one"


@pytest.mark.parametrize(
    "damage", [{"schema": 0}, {"body": b"{"}, {"body": b'{"id": 7}'}, {"body": b"\xff\x00"}]
)
async def test_a_saved_snapshot_that_cannot_be_read_is_replaced_by_a_fold_of_all_events(
    store: EventStore, damage: dict[str, int | bytes]
) -> None:
    append = await long_session(store, 1500)
    await store.database.write(lambda c: c.execute(update(snapshots).values(**damage)).rowcount)
    assert await store.load("s") == append.snapshot
    # it was saved again, so that the next load does not fold all events
    row = await store.database.read(lambda c: c.execute(select(snapshots)).one())
    assert (row.seq, row.schema) == (1500, saved_snapshots.SCHEMA)
    assert await store.load("s") == append.snapshot


def snapshot_schema_hash() -> str:
    def without_descriptions(schema: Any) -> Any:
        match schema:
            case dict():
                return {
                    key: without_descriptions(each) for key, each in schema.items() if key != "description"
                }
            case list():
                return [without_descriptions(each) for each in schema]
        return schema

    bare = without_descriptions(msgspec.json.schema(Snapshot))
    return hashlib.sha256(json.dumps(bare, sort_keys=True).encode()).hexdigest()[:16]


def test_the_schema_number_of_saved_snapshots_is_raised_when_the_snapshot_changes() -> None:
    assert (saved_snapshots.SCHEMA, snapshot_schema_hash()) == SNAPSHOT_SCHEMA, (
        "the snapshot has changed: raise SCHEMA in store/saved_snapshots.py and set SNAPSHOT_SCHEMA here"
    )


async def test_rows_of_sessions_and_workers_follow_the_events(store: EventStore) -> None:
    records = RecordStore(store.database)
    append = new_session_with_worker()
    await store.commit(append)
    for drafts in (
        [Draft(WorkerReady(pid=7), "w", "shell")],
        [error_draft("only the times move on", "w")],
        [Draft(worker_spawning(), "v", "other"), error_draft("hello", "w")],
        [Draft(SessionChanged(title="New"))],
        [Draft(SessionEnd(status="cancelled", reason="user_request"))],
    ):
        append = append_to(append.snapshot, *drafts)
        await store.commit(append)
        page = await records.list_sessions()
        assert [session_json(each) for each in page.sessions] == [session_json(append.snapshot)]


async def test_the_end_of_a_session_is_a_system_message(store: EventStore) -> None:
    append = new_session()
    await store.commit(append)
    end = SessionEnd(status="error", reason="error", detail="the agent would not start")
    await store.commit(append_to(append.snapshot, error_draft("a word before"), Draft(end)))
    first, second = await store.messages("s")
    assert (second["role"], json.loads(second["content"])) == (
        "system",
        {"type": "text", "text": "the agent would not start"},
    )
    assert [each["id"] for each in await store.messages("s", since=first["timestamp"])] == [second["id"]]
    assert len(await store.messages("s", limit=1)) == 1


async def test_the_newest_messages_are_read_in_order(store: EventStore) -> None:
    append = new_session()
    await store.commit(append)
    await store.commit(append_to(append.snapshot, *(error_draft(f"word {number}") for number in range(5))))
    seqs = [each["seq"] for each in await store.messages("s")]
    assert [each["seq"] for each in await store.messages("s", limit=2)] == seqs[:2]
    assert [each["seq"] for each in await store.messages("s", limit=2, newest=True)] == seqs[-2:]
    assert [each["seq"] for each in await store.messages("s", newest=True)] == seqs


async def test_the_ids_of_messages_are_uuids_that_grow_with_the_log(store: EventStore) -> None:
    found: set[uuid.UUID] = set()
    for name in ("s", "t"):
        append = new_session(name)
        await store.commit(append)
        await store.commit(
            append_to(append.snapshot, *(error_draft(f"word {number}") for number in range(20)))
        )
        ids = [each["id"] for each in await store.messages(name)]
        assert ids == sorted(ids)
        found |= set(map(uuid.UUID, ids))
    assert len(found) == 40
    assert {each.version for each in found} == {8}


async def test_outbox_lines_are_numbered_without_a_gap(store: EventStore) -> None:
    append = new_session_with_worker()
    await store.commit(append)
    assert await store.commit(append_to(append.snapshot, outbox=[line(), line()])) == (1, 2)
    assert await store.commit(append_to(append.snapshot, outbox=[line()])) == (3,)
    assert await store.undelivered_lines("w", 1) == [(1, b"line 1"), (2, b"line 2"), (3, b"line 3")]


async def test_outbox_numbers_never_restart(store: EventStore) -> None:
    append = new_session_with_worker()
    await store.commit(append)
    await store.commit(append_to(append.snapshot, outbox=[line(), line()]))
    await store.remove_delivered_lines("w", 1, 2)
    assert await store.undelivered_lines("w", 1) == []
    assert await store.commit(append_to(append.snapshot, outbox=[line()])) == (3,)


async def test_each_run_has_an_outbox_of_its_own(store: EventStore) -> None:
    append = new_session_with_worker()
    await store.commit(append)
    both = [line(run=1), line(run=2), line(run=1)]
    assert await store.commit(append_to(append.snapshot, outbox=both)) == (1, 1, 2)
    await store.remove_delivered_lines("w", 1, 1)
    assert await store.undelivered_lines("w", 1) == [(2, b"line 2")]
    assert await store.undelivered_lines("w", 2) == [(1, b"line 1")]


async def test_an_outbox_line_that_cannot_be_made_fails_its_append_and_uses_no_number(
    store: EventStore,
) -> None:
    def explode(_: int) -> bytes:
        raise ValueError("no such line")

    append = new_session_with_worker()
    await store.commit(append)
    good = append_to(append.snapshot, outbox=[line()])
    bad = append_to(append.snapshot, error_draft("with it"), outbox=[line(), line(make=explode)])
    results = await asyncio.gather(*map(store.commit, (good, bad, good)), return_exceptions=True)
    assert results[0] == (1,)
    assert isinstance(results[1], ValueError)
    assert results[2] == (2,)
    assert len(await store.events("s")) == 2


async def test_the_consumed_offset_is_stored_with_the_events(store: EventStore) -> None:
    append = new_session_with_worker()
    await store.commit(append)
    assert await store.consumed_offset("w", 1) == 0
    await store.commit(append_to(append.snapshot, error_draft("line"), consumed=ConsumedOffset("w", 1, 512)))
    await store.commit(append_to(append.snapshot, consumed=ConsumedOffset("w", 1, 700)))
    assert await store.consumed_offset("w", 1) == 700
    assert await store.consumed_offset("w", 2) == 0


async def test_an_answer_is_stored_with_its_events(store: EventStore) -> None:
    append = append_to(Snapshot(id="s"), Draft(SESSION_START), answer=answer("key", "hash", b'{"id":"s"}'))
    await store.commit(append)
    assert await store.stored_answer("key") == StoredAnswer("key", "hash", 201, b'{"id":"s"}')
    assert await store.stored_answer("other") is None


async def test_the_same_key_takes_effect_once_also_within_one_group_commit(store: EventStore) -> None:
    appends = [
        append_to(Snapshot(id=name), Draft(SESSION_START), answer=answer("key", name))
        for name in ("a", "b", "c")
    ]
    results = await asyncio.gather(*map(store.commit, appends), return_exceptions=True)
    assert results[0] == ()
    for repeated in results[1:]:
        assert isinstance(repeated, AlreadyAnswered)
        assert repeated.answer == answer("key", "a")
    assert (await RecordStore(store.database).list_sessions()).total == 1


async def test_an_idempotency_key_can_be_used_again_after_a_day(store: EventStore) -> None:
    await store.commit(append_to(Snapshot(id="a"), Draft(SESSION_START), answer=answer("key", "old")))
    await store.commit(append_to(Snapshot(id="b"), Draft(SESSION_START), answer=answer("young")))
    day = 24 * 60 * 60 * 1000
    aged = update(answers).where(answers.c.key == "key").values(created_at=answers.c.created_at - day)
    await store.database.write(lambda c: c.execute(aged).rowcount)
    assert await store.stored_answer("key") is None
    await store.commit(append_to(Snapshot(id="c"), Draft(SESSION_START), answer=answer("key", "new")))
    assert await store.stored_answer("key") == answer("key", "new")
    assert await store.stored_answer("young") is not None


async def test_an_event_with_a_number_that_exists_is_refused(store: EventStore) -> None:
    append = new_session()
    await store.commit(append)
    await store.commit(append_to(append.snapshot, error_draft("first")))
    with pytest.raises(IntegrityError):
        await store.commit(append_to(append.snapshot, error_draft("second")))
    assert error_texts([event for event, _ in await store.events("s")]) == ["first"]


async def test_an_event_of_a_missing_session_is_refused(store: EventStore) -> None:
    orphan = append_to(new_session("ghost").snapshot, error_draft("boo"))
    with pytest.raises(IntegrityError):
        await store.commit(orphan)


async def test_the_numbers_of_stored_events_have_no_gap(store: EventStore) -> None:
    append = new_session()
    await store.commit(append)
    for size in (1, 7, 30):
        append = append_to(append.snapshot, *(error_draft(str(n)) for n in range(size)))
        await store.commit(append)
    seqs: list[Event] = [event for event, _ in await store.events("s")]
    assert all(after.seq == before.seq + 1 for before, after in pairwise(seqs))
