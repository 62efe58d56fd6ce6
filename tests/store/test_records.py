"""Records: repositories, settings and agents are stored, changed and removed."""

import pytest
from msgspec.structs import replace

from bullpen.domain.errors import Conflict, NotFound
from bullpen.domain.events import Draft, SessionStart
from bullpen.domain.records import Repository
from bullpen.domain.snapshot import Snapshot
from bullpen.store.answers import PendingAnswer
from bullpen.store.append import AlreadyAnswered
from bullpen.store.database import Database
from bullpen.store.events import EventStore
from bullpen.store.records import RecordStore
from support.sample_events import append_to, new_session_with_worker

ENGINE = Repository(id="r1", path="/srv/engine", name="engine", created_at=1, updated_at=1)


@pytest.fixture
def records(database: Database) -> RecordStore:
    return RecordStore(database)


async def create_session_in(store: EventStore, repository: Repository) -> None:
    start = SessionStart(
        session_type="worktree", location_path=repository.path, title="x", repo_id=repository.id
    )
    await store.commit(append_to(Snapshot(id="s"), Draft(start)))


async def test_a_repository_is_registered_and_found(records: RecordStore) -> None:
    assert await records.add_repository(ENGINE) == ENGINE
    assert await records.repository("r1") == ENGINE
    assert await records.repositories() == [ENGINE]
    assert await records.repository("r2") is None


async def test_a_path_is_registered_once(records: RecordStore) -> None:
    await records.add_repository(ENGINE)
    with pytest.raises(Conflict, match="registered already, as engine"):
        await records.add_repository(replace(ENGINE, id="r2", name="other"))


async def test_a_repository_is_renamed(records: RecordStore) -> None:
    await records.add_repository(ENGINE)
    renamed = await records.edit_repository("r1", "The Engine")
    assert renamed.name == "The Engine"
    assert renamed.updated_at > ENGINE.updated_at
    assert await records.repository("r1") == renamed
    with pytest.raises(NotFound):
        await records.edit_repository("r2", "x")


async def test_a_repository_without_sessions_is_removed_completely(records: RecordStore) -> None:
    await records.add_repository(ENGINE)
    await records.remove_repository("r1")
    assert await records.repositories() == []
    assert await records.repository("r1", removed=True) is None
    with pytest.raises(NotFound):
        await records.remove_repository("r1")


async def test_a_removed_repository_can_still_be_read_for_its_sessions(
    records: RecordStore, store: EventStore
) -> None:
    await records.add_repository(ENGINE)
    await create_session_in(store, ENGINE)
    await records.remove_repository("r1")
    assert await records.repository("r1") is None
    assert await records.repository("r1", removed=True) == ENGINE
    assert (await records.list_sessions(repo_id="r1")).total == 1
    with pytest.raises(NotFound):
        await records.edit_repository("r1", "ghost")


async def test_a_repository_that_is_registered_again_has_its_sessions(
    records: RecordStore, store: EventStore
) -> None:
    await records.add_repository(ENGINE)
    await create_session_in(store, ENGINE)
    await records.remove_repository("r1")
    again = await records.add_repository(replace(ENGINE, id="r9", name="engine again", updated_at=5))
    assert (again.id, again.name, again.created_at) == ("r1", "engine again", 1)
    assert await records.repositories() == [again]


async def test_a_repository_is_registered_once_per_idempotency_key(
    records: RecordStore, store: EventStore
) -> None:
    answer = PendingAnswer[Repository]("k", "h", lambda added: (201, added.id.encode()))
    await records.add_repository(ENGINE, answer)
    with pytest.raises(AlreadyAnswered) as again:
        await records.add_repository(replace(ENGINE, id="r2"), answer)
    assert again.value.answer.body == b"r1"
    assert await records.repositories() == [ENGINE]


async def test_an_answer_can_be_stored_without_a_change(records: RecordStore, store: EventStore) -> None:
    answer = PendingAnswer[None]("k", "h", lambda _: (204, b""))
    await records.store_answer(answer)
    with pytest.raises(AlreadyAnswered):
        await records.store_answer(answer)


async def test_sessions_and_workers_are_counted(records: RecordStore, store: EventStore) -> None:
    assert (await records.count_sessions(), await records.count_workers()) == ({}, {})
    for n in range(2):
        await store.commit(new_session_with_worker(f"s{n}", f"w{n}"))
    assert await records.count_sessions() == {"active": 2}
    assert await records.count_workers() == {"spawning": 2}


async def test_a_setting_can_be_any_json_value(records: RecordStore) -> None:
    assert await records.setting("queue") is None
    await records.set_setting("queue", {"enabled": True, "delay_seconds": 0})
    await records.set_setting("queue", {"enabled": False})
    assert await records.setting("queue") == {"enabled": False}


async def test_agents_are_added_changed_and_removed(records: RecordStore) -> None:
    await records.put_agent("claude", {"name": "Claude", "command": ["claude"]})
    await records.put_agent("claude", {"name": "Claude", "command": ["claude", "--acp"]})
    assert await records.agents() == {"claude": {"name": "Claude", "command": ["claude", "--acp"]}}
    await records.remove_agent("claude")
    assert await records.agents() == {}
    with pytest.raises(NotFound):
        await records.remove_agent("claude")


async def test_live_sessions_and_the_sessions_of_workers_are_found(
    records: RecordStore, store: EventStore
) -> None:
    for n in range(3):
        await store.commit(new_session_with_worker(f"s{n}", f"w{n}"))
    assert sorted(await records.live_sessions()) == ["s0", "s1", "s2"]
    assert await records.sessions_of_workers(["w0", "w2", "ghost"]) == {"w0": "s0", "w2": "s2"}
    assert await records.sessions_of_workers([]) == {}
