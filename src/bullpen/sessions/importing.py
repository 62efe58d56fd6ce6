"""Import the sessions of a `sessions.json`: each once, with its workers. Nothing is started."""

import uuid
from collections.abc import Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from .. import clock
from ..domain import commands
from ..domain.agents import AgentDefinition
from ..domain.commands import AddWorker
from ..domain.errors import BullpenError, Invalid, NotFound
from ..domain.events import Draft, Event, SessionImported, SessionStart, WorkerExited, WorkerReady
from ..domain.local_urls import check_local_url
from ..domain.records import Repository
from ..domain.snapshot import Snapshot, fold
from ..log.log import SessionLog
from ..store.records import RecordStore
from ..wire.sessions_json import SavedSession, SavedWorker, is_uuid, read_saved, read_time
from ..workers.kinds import KINDS
from .session import Session
from .sessions import Sessions

NAMESPACE = uuid.UUID("6f1f5d3e-5a0c-4b7e-9d8a-2c4e6f80a1b3")  # for ids that are not UUIDs


class ImportedSession(Struct, frozen=True, kw_only=True, rename="camel"):
    """An imported session; `before`: by an earlier import. `notes` tell what differs from the original."""

    id: str
    session_id: str
    title: str
    workers: int
    before: bool = False
    notes: list[str]


class SkippedEntry(Struct, frozen=True, kw_only=True, rename="camel"):
    """An entry that was not imported, with the reason, and the root that would allow its directory."""

    id: str
    reason: str
    allow_root: str | None = None


class ImportResult(Struct, frozen=True, kw_only=True):
    """The imported (`taken`) and the skipped (`left`) entries."""

    taken: list[ImportedSession]
    left: list[SkippedEntry]


async def import_sessions(sessions: Sessions, records: RecordStore, entries: Sequence[Any]) -> ImportResult:
    """Import each entry that was not imported before; skip an invalid one."""
    taken, left = [], []
    repositories = await records.repositories()
    for number, entry in enumerate(entries, 1):
        name = entry.get("id") if isinstance(entry, dict) else None
        try:
            async with sessions.import_lock:  # two requests may import the same file
                taken.append(await _import_one(sessions, repositories, read_saved(entry)))
        except BullpenError as error:
            root = error.details.get("allowRoot") if isinstance(error.details, dict) else None
            reason = str(error)
            left.append(SkippedEntry(id=str(name or f"entry {number}"), reason=reason, allow_root=root))
    return ImportResult(taken=taken, left=left)


async def _import_one(
    sessions: Sessions, repositories: list[Repository], saved: SavedSession
) -> ImportedSession:
    """Create a session with the saved workers, none of which starts; return it if it exists."""
    session_id = _stable_id(saved.id)
    if (session := await _existing(sessions, session_id)) is not None:
        return _imported(saved, session, before=True)
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
    now = clock.now_ms()
    events = _ImportedEvents(session_id, now)
    original = SessionImported(original_id=saved.id, created_at=saved.created_at)
    events.append([Draft(start), Draft(original)], saved.created_at)
    for worker in saved.workers:
        if worker.type not in KINDS:
            notes.append(f"the worker {worker.name or worker.id} was left out: no type {worker.type} here")
            continue
        agent = _find_agent(sessions, worker)
        try:
            events.add_worker(worker, agent, str(directory), saved.id)
        except Invalid as error:
            notes.append(f"the worker {worker.name or worker.id} was left out: {error}")
            continue
        if worker.type == "agent" and worker.agents and agent is None:
            notes.append(
                f"no agent {worker.agents[-1]} is defined here: define it before you restart {worker.name}"
            )
    session = sessions.add_new(await SessionLog.create(sessions.store, session_id, events.drafts))
    return _imported(saved, session, notes=notes)


def _imported(
    saved: SavedSession, session: Session, *, before: bool = False, notes: Sequence[str] = ()
) -> ImportedSession:
    """Return what is reported about an entry whose session exists."""
    return ImportedSession(
        id=saved.id,
        session_id=session.id,
        title=session.snapshot.title,
        workers=len(session.snapshot.workers),
        before=before,
        notes=list(notes),
    )


class _ImportedEvents:
    """Collects the events of an imported session, in which each worker has started and exited.

    They have the times at which the session and its workers were created.
    """

    def __init__(self, session_id: str, now: int) -> None:
        self.drafts: list[Draft] = []
        self._snapshot = Snapshot(id=session_id)
        self._now = now

    def add_worker(
        self, worker: SavedWorker, agent: AgentDefinition | None, directory: str, of_session: str
    ) -> None:
        """Append the events of a worker that started and exited. Every agent ran in a terminal."""
        is_agent = worker.type == "agent"
        unknown_agent = worker.agents[-1] if is_agent and worker.agents else None
        order = AddWorker(
            worker_id=_stable_id(worker.id, of_session),
            type=worker.type,
            name=worker.name if worker.name.isprintable() else None,
            agent_id=agent.id if agent else unknown_agent,
            agent_kind=agent.kind if agent else "pty" if is_agent else None,
            file_path=worker.file_path if worker.type == "markdown" else None,
            url=check_local_url(worker.url) if worker.type == "web" and worker.url else None,
            workspace=directory,
        )
        spawning = commands.add_worker(self._snapshot, order)
        ended = [Draft(fact, spawning.worker_id, spawning.role) for fact in (WorkerReady(), WorkerExited())]
        self.append([spawning, *ended], worker.created_at)

    def append(self, drafts: Sequence[Draft], created_at: str) -> None:
        """Append events of that time, and fold them into the snapshot for the next ones."""
        at = read_time(created_at, self._now)
        for draft in drafts:
            event = Event(self._snapshot.last_seq + 1, at, draft.fact, draft.worker_id, draft.role)
            self._snapshot = fold(self._snapshot, event)
            self.drafts.append(replace(draft, at=at))


def _stable_id(id: str, within: str = "") -> str:
    """Return an id that is the same for each import, so that a second import finds the first."""
    return id if is_uuid(id) else str(uuid.uuid5(NAMESPACE, f"{within}/{id}"))


async def _existing(sessions: Sessions, session_id: str) -> Session | None:
    """Return the session with this id; None if it does not exist."""
    try:
        return await sessions.get(session_id)
    except NotFound:
        return None


def _find_agent(sessions: Sessions, worker: SavedWorker) -> AgentDefinition | None:
    """Return the definition of the first of the worker's possible agents that is defined here, or None."""
    for agent_id in worker.agents if worker.type == "agent" else ():
        try:
            return sessions.services.agents.get(agent_id)
        except NotFound:
            continue
    return None
