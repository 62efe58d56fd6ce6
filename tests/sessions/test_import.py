"""Import of a `sessions.json`: each session is imported once, or left out with a reason."""

import uuid
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from bullpen.domain.events import SessionImported, SessionStart
from bullpen.domain.records import Repository
from bullpen.domain.states import WorkerState
from bullpen.sessions.importing import NAMESPACE, ImportedSession, ImportResult, import_sessions
from support.server_without_web import ServerWithoutWeb

UUID = "0123abcd-0123-4567-89ab-0123456789ab"


def worker(id: str, type: str = "agent", **more: Any) -> dict[str, Any]:
    return {"id": id, "type": type, "name": "Helper", **more}


def entry(id: str, directory: Path, *workers: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return an entry of a `sessions.json`."""
    fields = {"id": id, "type": "quick", "locationPath": str(directory), "createdAt": "2025"}
    return {**fields, "workers": list(workers), **more}


async def import_entries(local_server: ServerWithoutWeb, *entries: Any) -> ImportResult:
    return await import_sessions(local_server.sessions, local_server.records, entries)


@pytest.fixture
def directory(local_server: ServerWithoutWeb) -> Path:
    directory = local_server.workspace / "project"
    directory.mkdir()
    return directory


async def test_a_session_is_imported_with_its_workers_as_exited(
    local_server: ServerWithoutWeb, directory: Path
) -> None:
    agent = worker("a", agentId="scripted")
    saved = entry(UUID, directory, agent, worker(UUID, "terminal", name="bad\nname", agentId="scripted"))
    imported = await import_entries(local_server, saved)
    assert imported == ImportResult(
        taken=[ImportedSession(id=UUID, session_id=UUID, title="project", workers=2, notes=[])], left=[]
    )
    session = await local_server.sessions.get(UUID)
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
    assert {first.workspace, second.workspace} == {str(directory)}
    facts = await local_server.facts(session)
    start = SessionStart(session_type="quick", location_path=str(directory), title="project")
    assert facts[:2] == [start, SessionImported(original_id=UUID, created_at="2025")]
    assert [fact.type for fact in facts[2:]] == ["worker_spawning", "worker_ready", "worker_exited"] * 2


async def test_a_session_is_imported_once_with_an_id_derived_from_its_old_one(
    local_server: ServerWithoutWeb, directory: Path
) -> None:
    (taken,) = (await import_entries(local_server, entry("one", directory))).taken
    assert taken.session_id == str(uuid.uuid5(NAMESPACE, "/one"))
    again = await import_entries(local_server, entry("one", directory), entry("two", directory))
    assert again.left == []
    assert [(each.id, each.before) for each in again.taken] == [("one", True), ("two", False)]
    assert again.taken[0] == replace(taken, before=True)


async def test_an_entry_that_cannot_be_imported_is_reported_and_the_others_are_imported(
    local_server: ServerWithoutWeb, directory: Path
) -> None:
    missing = local_server.workspace / "gone"
    imported = await import_entries(
        local_server, 7, {"id": "x"}, entry("far", missing), {}, entry("good", directory)
    )
    assert [each.id for each in imported.taken] == ["good"]
    assert [each.id for each in imported.left] == ["entry 1", "x", "far", "entry 4"]
    assert imported.left[0].reason == "Expected `object`, got `int`"
    assert str(missing) in imported.left[2].reason


async def test_differences_between_an_entry_and_its_session_are_reported_as_notes(
    local_server: ServerWithoutWeb, directory: Path
) -> None:
    workers = [worker("a", agentId="lost"), worker("b", "toaster"), worker("c", "toaster", name="")]
    (taken,) = (
        await import_entries(local_server, entry("s", directory, *workers, worker("d"), type="worktree"))
    ).taken
    assert taken.notes == [
        "its repository is not registered here: it is a quick session now",
        "no agent lost is defined here: define it before you restart Helper",
        "the worker Helper was left out: no type toaster here",
        "the worker c was left out: no type toaster here",
    ]
    assert taken.workers == 2
    snapshot = (await local_server.sessions.get(taken.session_id)).snapshot
    assert (snapshot.type, snapshot.repo_id, snapshot.worktree_id) == ("quick", None, None)


async def test_the_repository_of_a_worktree_session_is_found_by_id_or_by_path(
    local_server: ServerWithoutWeb, directory: Path
) -> None:
    for id, path in (("other", local_server.workspace), ("repo", directory)):
        await local_server.records.add_repository(
            Repository(id=id, path=str(path), name=id, created_at=1, updated_at=1)
        )
    entries = [
        entry("by id", directory, type="worktree", repositoryId="other", worktreeId="t"),
        entry("by place", directory, type="worktree", repositoryId="unknown", worktreeId="t"),
        entry("quick", directory, repositoryId="other", worktreeId="t"),
    ]
    taken = (await import_entries(local_server, *entries)).taken
    assert [each.notes for each in taken] == [[], [], []]
    snapshots = [(await local_server.sessions.get(each.session_id)).snapshot for each in taken]
    assert [(each.type, each.repo_id, each.worktree_id) for each in snapshots] == [
        ("worktree", "other", "t"),
        ("worktree", "repo", "t"),
        ("quick", None, None),
    ]
