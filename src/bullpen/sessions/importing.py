"""Import the sessions of a `sessions.json`: each once, with its workers. Nothing is started."""

import uuid
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from ..domain import commands
from ..domain.commands import AddWorker
from ..domain.errors import BullpenError, Conflict, NotFound
from ..domain.events import Draft, Event, SessionImported, SessionStart, WorkerExited, WorkerReady
from ..domain.records import Repository
from ..domain.snapshot import Snapshot, fold
from ..log.log import SessionLog
from ..store.records import RecordStore
from ..wire.sessions_json import SavedSession, SavedWorker, is_uuid, read_saved
from ..workers.kinds import KINDS
from .sessions import Sessions

NAMESPACE = uuid.UUID("6f1f5d3e-5a0c-4b7e-9d8a-2c4e6f80a1b3")  # for ids that are not UUIDs


class ImportedSession(Struct, frozen=True, kw_only=True, rename="camel"):
    """A session that was imported; `notes` tell what differs from the original."""

    id: str
    session_id: str
    title: str
    workers: int
    notes: list[str]


class SkippedEntry(Struct, frozen=True, kw_only=True):
    """An entry that was not imported, with the reason."""

    id: str
    reason: str


class ImportResult(Struct, frozen=True, kw_only=True):
    """The imported (`taken`) and the skipped (`left`) entries."""

    taken: list[ImportedSession]
    left: list[SkippedEntry]


async def import_sessions(sessions: Sessions, records: RecordStore, entries: Sequence[Any]) -> ImportResult:
    """Import each entry; skip an invalid one, and one that exists already."""
    taken, left = [], []
    repositories = await records.repositories()
    for number, entry in enumerate(entries, 1):
        name = entry.get("id") if isinstance(entry, dict) else None
        try:
            async with sessions.import_lock:  # two requests may import the same file
                taken.append(await _import_one(sessions, repositories, read_saved(entry)))
        except BullpenError as error:
            left.append(SkippedEntry(id=str(name or f"entry {number}"), reason=str(error)))
    return ImportResult(taken=taken, left=left)


async def _import_one(
    sessions: Sessions, repositories: list[Repository], saved: SavedSession
) -> ImportedSession:
    """Create a session with the saved workers, none of which starts. Raise Conflict if it exists."""
    session_id = _stable_id(saved.id)
    await _require_absent(sessions, session_id)
    directory = sessions.services.roots.directory(saved.location_path)
    repository = next((each for each in repositories if saved.repository_id == each.id), None)
    repository = repository or next((each for each in repositories if each.path == str(directory)), None)
    is_worktree = saved.type == "worktree" and repository is not None
    start = SessionStart(
        session_type="worktree" if is_worktree else "quick",
        location_path=str(directory),
        title=commands.check_text("title", directory.name or str(directory), commands.MAX_TITLE_LENGTH),
        repo_id=repository.id if repository and is_worktree else None,
        worktree_id=saved.worktree_id if is_worktree else None,
    )
    notes = []
    if saved.type == "worktree" and not is_worktree:
        notes.append("its repository is not registered here: it is a quick session now")
    events = _ImportedEvents(session_id, [Draft(start), _imported_fact(saved)])
    for worker in saved.workers:
        if worker.type not in KINDS:
            notes.append(f"the worker {worker.name or worker.id} was left out: no type {worker.type} here")
            continue
        events.add_worker(worker, str(directory), saved.id)
        notes += _notes_about_agent(sessions, worker)
    log = await SessionLog.create(sessions.store, session_id, events.drafts)
    session = sessions.add_new(log)
    return ImportedSession(
        id=saved.id,
        session_id=session_id,
        title=start.title,
        workers=len(session.snapshot.workers),
        notes=notes,
    )


class _ImportedEvents:
    """Collects the events of an imported session, in which each worker has started and exited."""

    def __init__(self, session_id: str, drafts: list[Draft]) -> None:
        self.drafts: list[Draft] = []
        self._snapshot = Snapshot(id=session_id)
        self._append(drafts)

    def add_worker(self, worker: SavedWorker, directory: str, of_session: str) -> None:
        """Append the events of a worker that started and exited."""
        order = AddWorker(
            worker_id=_stable_id(worker.id, of_session),
            type=worker.type,
            name=worker.name if worker.name.isprintable() else None,
            agent_id=worker.agent if worker.type == "agent" else None,
            workspace=directory,
        )
        spawning = commands.add_worker(self._snapshot, order)
        ended = [Draft(fact, spawning.worker_id, spawning.role) for fact in (WorkerReady(), WorkerExited())]
        self._append([spawning, *ended])

    def _append(self, drafts: Sequence[Draft]) -> None:
        """Append events, and fold them into the snapshot for the next ones."""
        for draft in drafts:
            event = Event(self._snapshot.last_seq + 1, 0, draft.fact, draft.worker_id, draft.role)
            self._snapshot = fold(self._snapshot, event)
            self.drafts.append(draft)


def _imported_fact(saved: SavedSession) -> Draft:
    """Return the event that records the id and time of the original session."""
    return Draft(SessionImported(original_id=saved.id, created_at=saved.created_at))


def _stable_id(id: str, within: str = "") -> str:
    """Return an id that is the same for each import, so that a second import finds the first."""
    return id if is_uuid(id) else str(uuid.uuid5(NAMESPACE, f"{within}/{id}"))


async def _require_absent(sessions: Sessions, session_id: str) -> None:
    """Raise Conflict if there is a session with this id."""
    try:
        await sessions.get(session_id)
    except NotFound:
        return
    raise Conflict(f"it exists already, as session {session_id}")


def _notes_about_agent(sessions: Sessions, worker: SavedWorker) -> list[str]:
    """Return a note if the agent of the worker is not defined here."""
    if worker.type != "agent" or worker.agent is None:
        return []
    try:
        sessions.services.agents.get(worker.agent)
    except NotFound:
        return [f"no agent {worker.agent} is defined here: define it before you restart {worker.name}"]
    return []
