"""What the events of a session add up to: a pure fold.

Immutable, so that a change can be computed, stored, and only then be true. `ui/src/state/session.ts`
is its twin and passes the same golden files.
"""

from collections.abc import Iterable
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from .errors import Conflict, NotFound
from .events import (
    Event,
    SessionChanged,
    SessionEnd,
    SessionStart,
    WorkerActivity,
    WorkerExited,
    WorkerFailed,
    WorkerReady,
    WorkerSpawning,
    WorkerTerminated,
)
from .states import ALIVE, Activity, State, Status, next_state, next_status


class Worker(Struct, frozen=True, kw_only=True):
    """One agent conversation, terminal, diff or document of a session."""

    id: str
    type: str
    name: str
    role: str
    workspace: str
    created_at: int
    last_active_at: int
    agent_id: str | None = None
    file_path: str | None = None
    state: State = State.SPAWNING
    activity: Activity = Activity.UNKNOWN
    activity_why: str = "just started"
    activity_since: int = 0
    run: int = 1
    cols: int = 80
    rows: int = 24
    pid: int | None = None
    exit_code: int | None = None
    signal: str | None = None
    error: str | None = None

    @property
    def alive(self) -> bool:
        return self.state in ALIVE


class Snapshot(Struct, frozen=True, kw_only=True):
    """A session as it is after event `last_seq`."""

    id: str
    type: str = "quick"
    title: str = ""
    status: Status = Status.ACTIVE
    end_reason: str | None = None
    metadata: dict[str, Any] = {}
    repo_id: str | None = None
    worktree_id: str | None = None
    location_path: str = ""
    on_last_disconnect: str = "keep"
    created_at: int = 0
    updated_at: int = 0
    last_seq: int = 0
    workers: dict[str, Worker] = {}

    @property
    def live(self) -> bool:
        """Whether some worker is alive (the active/inactive of seed 004)."""
        return any(worker.alive for worker in self.workers.values())

    def worker(self, worker_id: str) -> Worker:
        try:
            return self.workers[worker_id]
        except KeyError:
            raise NotFound(f"no worker {worker_id} in session {self.id}") from None

    def in_role(self, role: str) -> Worker | None:
        """The worker that holds a role; a terminated one has given it back."""
        for worker in self.workers.values():
            if worker.role == role and worker.state is not State.TERMINATED:
                return worker
        return None


def fold(snapshot: Snapshot, event: Event) -> Snapshot:
    """The snapshot after one more event. Refuses an event out of order or against the tables."""
    if event.seq != snapshot.last_seq + 1:
        raise Conflict(f"event {event.seq} cannot follow {snapshot.last_seq}")
    return replace(_apply(snapshot, event), last_seq=event.seq, updated_at=event.timestamp)


def fold_all(snapshot: Snapshot, events: Iterable[Event]) -> Snapshot:
    for event in events:
        snapshot = fold(snapshot, event)
    return snapshot


def _apply(snapshot: Snapshot, event: Event) -> Snapshot:
    match event.fact:
        case SessionStart() as fact:
            return replace(
                snapshot,
                type=fact.session_type,
                title=fact.title,
                repo_id=fact.repo_id,
                worktree_id=fact.worktree_id,
                location_path=fact.location_path,
                on_last_disconnect=fact.on_last_disconnect,
                created_at=event.timestamp,
            )
        case SessionChanged() as fact:
            return replace(
                snapshot,
                title=snapshot.title if fact.title is None else fact.title,
                on_last_disconnect=fact.on_last_disconnect or snapshot.on_last_disconnect,
            )
        case SessionEnd() as fact:
            metadata = snapshot.metadata | {"reason": fact.reason}
            status = next_status(snapshot.status, fact)
            return replace(snapshot, status=status, end_reason=fact.reason, metadata=metadata)
        case WorkerSpawning() if event.worker_id not in snapshot.workers:
            return _with_worker(snapshot, _first_run(event, event.fact))
        case _ if event.worker_id is not None:
            before = snapshot.worker(event.worker_id)
            return _with_worker(snapshot, _change(before, event))
        case _:
            return snapshot


def _with_worker(snapshot: Snapshot, worker: Worker) -> Snapshot:
    return replace(snapshot, workers=snapshot.workers | {worker.id: worker})


def _first_run(event: Event, fact: WorkerSpawning) -> Worker:
    assert event.worker_id is not None
    return Worker(
        id=event.worker_id,
        type=fact.worker_type,
        name=fact.name,
        role=event.role or fact.name,
        workspace=fact.workspace,
        agent_id=fact.agent_id,
        file_path=fact.file_path,
        run=fact.run,
        cols=fact.cols,
        rows=fact.rows,
        created_at=event.timestamp,
        last_active_at=event.timestamp,
        activity_since=event.timestamp,
    )


def _change(worker: Worker, event: Event) -> Worker:
    worker = replace(worker, last_active_at=event.timestamp)
    match event.fact:
        case WorkerActivity() as fact:
            return replace(
                worker,
                activity=Activity(fact.activity),
                activity_why=fact.why,
                activity_since=event.timestamp,
            )
        case WorkerSpawning() | WorkerReady() | WorkerExited() | WorkerFailed() | WorkerTerminated():
            return _step(worker, event)
        case _:
            return worker


def _step(worker: Worker, event: Event) -> Worker:
    worker = replace(
        worker,
        state=next_state(worker.state, event.fact),
        activity=Activity.UNKNOWN,
        activity_since=event.timestamp,
    )
    match event.fact:
        case WorkerSpawning() as fact:
            return replace(
                worker,
                run=fact.run,
                cols=fact.cols,
                rows=fact.rows,
                pid=None,
                exit_code=None,
                signal=None,
                error=None,
                activity_why="starting",
            )
        case WorkerReady() as fact:
            return replace(worker, pid=fact.pid, activity_why="started")
        case WorkerExited() as fact:
            return replace(worker, exit_code=fact.exit_code, signal=fact.signal, activity_why="ended")
        case WorkerFailed() as fact:
            return replace(
                worker,
                exit_code=fact.exit_code,
                signal=fact.signal,
                error=fact.error,
                activity_why="failed",
            )
        case WorkerTerminated() as fact:
            return replace(worker, activity_why=f"ended: {fact.reason}")
        case _:
            return worker
