"""The sessions of a `sessions.json` inside one process: each is taken once, or left with a reason."""

import uuid
from pathlib import Path
from typing import Any

import pytest

from bullpen.domain.events import SessionImported, SessionStart
from bullpen.domain.records import Repository
from bullpen.domain.states import WorkerState
from bullpen.sessions.importing import NAMESPACE, ImportedSession, ImportResult, SkippedEntry, import_sessions
from support.server_without_web import ServerWithoutWeb

UUID = "0123abcd-0123-4567-89ab-0123456789ab"


def worker(id: str, type: str = "agent", **more: Any) -> dict[str, Any]:
    return {"id": id, "type": type, "name": "Helper", **more}


def saved(id: str, place: Path, *workers: dict[str, Any], **more: Any) -> dict[str, Any]:
    fields = {"id": id, "type": "quick", "locationPath": str(place), "createdAt": "2025"}
    return {**fields, "workers": list(workers), **more}


async def take(house: ServerWithoutWeb, *entries: Any) -> ImportResult:
    return await import_sessions(house.sessions, house.records, entries)


@pytest.fixture
def place(house: ServerWithoutWeb) -> Path:
    place = house.workspace / "project"
    place.mkdir()
    return place


async def test_a_session_comes_with_its_workers_which_have_ended(
    house: ServerWithoutWeb, place: Path
) -> None:
    agent = worker("a", agentId="scripted")
    entry = saved(UUID, place, agent, worker(UUID, "terminal", name="bad\nname", agentId="scripted"))
    imported = await take(house, entry)
    assert imported == ImportResult(
        taken=[ImportedSession(id=UUID, session_id=UUID, title="project", workers=2, notes=[])], left=[]
    )
    session = await house.sessions.get(UUID)
    first, second = session.snapshot.workers.values()
    assert (first.type, first.name, first.role, first.agent_id) == ("agent", "Helper", "helper", "scripted")
    assert first.id == str(uuid.uuid5(NAMESPACE, f"{UUID}/a"))
    assert (second.type, second.name, second.role, second.agent_id) == (
        "terminal",
        "Terminal",
        "terminal",
        None,
    )
    assert second.id == UUID
    assert {first.state, second.state} == {WorkerState.EXITED}
    assert {first.workspace, second.workspace} == {str(place)}
    facts = await house.facts(session)
    start = SessionStart(session_type="quick", location_path=str(place), title="project")
    assert facts[:2] == [start, SessionImported(original_id=UUID, created_at="2025")]
    assert [fact.type for fact in facts[2:]] == ["worker_spawning", "worker_ready", "worker_exited"] * 2


async def test_a_session_is_taken_once_and_under_the_same_id_each_time(
    house: ServerWithoutWeb, place: Path
) -> None:
    (taken,) = (await take(house, saved("one", place))).taken
    assert taken.session_id == str(uuid.uuid5(NAMESPACE, "/one"))
    again = await take(house, saved("one", place), saved("two", place))
    assert again.left == [SkippedEntry(id="one", reason=f"it exists already, as session {taken.session_id}")]
    assert [each.id for each in again.taken] == ["two"]


async def test_what_cannot_be_taken_is_named_and_harms_no_other(house: ServerWithoutWeb, place: Path) -> None:
    nowhere = house.workspace / "gone"
    imported = await take(house, 7, {"id": "x"}, saved("far", nowhere), {}, saved("good", place))
    assert [each.id for each in imported.taken] == ["good"]
    assert [each.id for each in imported.left] == ["entry 1", "x", "far", "entry 4"]
    assert imported.left[0].reason == "Expected `object`, got `int`"
    assert str(nowhere) in imported.left[2].reason


async def test_what_is_not_as_it_was_stands_in_the_notes(house: ServerWithoutWeb, place: Path) -> None:
    workers = [worker("a", agentId="lost"), worker("b", "toaster"), worker("c", "toaster", name="")]
    (taken,) = (await take(house, saved("s", place, *workers, worker("d"), type="worktree"))).taken
    assert taken.notes == [
        "its repository is not registered here: it is a quick session now",
        "no agent lost is defined here: define it before you restart Helper",
        "the worker Helper was left out: no type toaster here",
        "the worker c was left out: no type toaster here",
    ]
    assert taken.workers == 2
    snapshot = (await house.sessions.get(taken.session_id)).snapshot
    assert (snapshot.type, snapshot.repo_id, snapshot.worktree_id) == ("quick", None, None)


async def test_a_worktree_session_belongs_to_its_repository_by_id_or_by_place(
    house: ServerWithoutWeb, place: Path
) -> None:
    for id, path in (("other", house.workspace), ("repo", place)):
        await house.records.add_repository(
            Repository(id=id, path=str(path), name=id, created_at=1, updated_at=1)
        )
    entries = [
        saved("by id", place, type="worktree", repositoryId="other", worktreeId="t"),
        saved("by place", place, type="worktree", repositoryId="unknown", worktreeId="t"),
        saved("quick", place, repositoryId="other", worktreeId="t"),
    ]
    taken = (await take(house, *entries)).taken
    assert [each.notes for each in taken] == [[], [], []]
    found = [(await house.sessions.get(each.session_id)).snapshot for each in taken]
    assert [(each.type, each.repo_id, each.worktree_id) for each in found] == [
        ("worktree", "other", "t"),
        ("worktree", "repo", "t"),
        ("quick", None, None),
    ]
