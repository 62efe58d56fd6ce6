"""The state of a session, computed from its events by a pure fold.

Immutable, so that a change can be computed and stored before it takes effect. `ui/src/state/session.ts` does
the same for the page and passes the same golden files.
"""

from collections.abc import Iterable
from typing import Any

from msgspec import UNSET, Struct
from msgspec.structs import replace

from .conversation import AgentMessage, AgentThought, Permission, Plan, Question, ToolCall, TurnEnd
from .conversation_state import Conversation, fold_conversation
from .errors import Conflict, NotFound
from .events import (
    Event,
    Fact,
    SessionChanged,
    SessionEnd,
    SessionReopened,
    SessionStart,
    WorkerActivity,
    WorkerCommand,
    WorkerExited,
    WorkerFailed,
    WorkerReady,
    WorkerSpawning,
    WorkerTerminated,
)
from .queue import Queue, fold_queue
from .reasons import worker_end_text
from .sandbox import SandboxLevel
from .sandbox_refusals import OpenRefusal, fold_refusals
from .states import ALIVE, Activity, SessionStatus, WorkerState, next_state, next_status

MAX_RESTART_TIMES = 16  # remembered of a worker
MAX_SETTLED = 256  # remembered ids of answered requests, for which a second answer is a Conflict

# Facts that show that an agent has answered at least once.
ANSWERS = (AgentMessage, AgentThought, Plan, ToolCall, Permission, Question)


class Worker(Struct, frozen=True, kw_only=True):
    """The state of one worker of a session: an agent, a terminal, a diff or a document."""

    id: str
    type: str
    name: str
    role: str
    workspace: str
    created_at: int
    last_active_at: int
    agent_id: str | None = None
    agent_kind: str | None = None
    file_path: str | None = None
    url: str | None = None
    state: WorkerState = WorkerState.SPAWNING
    activity: Activity = Activity.UNKNOWN
    activity_why: str = "just started"
    activity_since: int = 0
    by_hand: bool = False  # the current work was typed into the terminal, not prompted
    run: int = 1
    cols: int = 80
    rows: int = 24
    pid: int | None = None
    exit_code: int | None = None
    signal: str | None = None
    error: str | None = None
    command: WorkerCommand | None = None  # what a terminal runs in place of a shell
    restarts: tuple[int, ...] = ()  # times of the last automatic restarts
    again: bool = False  # it crashed and is about to be restarted automatically
    sandbox: SandboxLevel | None = None  # of the current run
    sandbox_asked: SandboxLevel | None = None  # what was requested for this worker

    @property
    def alive(self) -> bool:
        """Whether the worker is spawning or active."""
        return self.state in ALIVE

    @property
    def owner(self) -> str | None:
        """The id of the agent whose command this terminal runs; None for any other worker."""
        return self.command.owner if self.command else None

    @property
    def is_typed_to(self) -> bool:
        """Whether the worker is an agent that has only a terminal: prompts are typed into it."""
        return self.agent_kind == "pty"


class PendingPermission(Struct, frozen=True, kw_only=True):
    """An open permission request with the worker that waits for the answer."""

    worker: Worker
    permission: Permission
    since: int


class PendingQuestion(Struct, frozen=True, kw_only=True):
    """An open form with the worker that waits for the answer."""

    worker: Worker
    question: Question
    since: int


class Snapshot(Struct, frozen=True, kw_only=True):
    """The state of a session after event `last_seq`."""

    id: str
    type: str = "quick"
    title: str = ""
    status: SessionStatus = SessionStatus.ACTIVE
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
    conversations: dict[str, Conversation] = {}  # of agents, by worker id
    queue: Queue = Queue()
    settled: tuple[str, ...] = ()  # ids of answered permissions and questions, the newest last
    founder: str | None = None  # id of the agent the session was created with, until it has answered
    started_by: str | None = None  # token id of the delegate that started it
    sandbox: SandboxLevel | None = None  # the least level of its agents
    refusals: tuple[OpenRefusal, ...] = ()  # what its runs were refused and a user could allow

    @property
    def live(self) -> bool:
        """Whether a worker is alive, or about to be restarted automatically."""
        return any(worker.alive or worker.again for worker in self.workers.values())

    @property
    def primary(self) -> Worker | None:
        """The first agent that is not terminated. Prompts go to it unless they name another agent."""
        agents = (worker for worker in self.workers.values() if worker.type == "agent")
        return next((worker for worker in agents if worker.state is not WorkerState.TERMINATED), None)

    @property
    def permissions(self) -> list[PendingPermission]:
        """The open permissions of all workers, oldest first."""
        found = [
            PendingPermission(worker=self.worker(worker_id), permission=open.fact, since=open.since)
            for worker_id, conversation in self.conversations.items()
            for open in conversation.permissions.values()
        ]
        return sorted(found, key=lambda each: each.since)

    @property
    def questions(self) -> list[PendingQuestion]:
        """The open questions of all workers, oldest first."""
        found = [
            PendingQuestion(worker=self.worker(worker_id), question=open.fact, since=open.since)
            for worker_id, conversation in self.conversations.items()
            for open in conversation.questions.values()
        ]
        return sorted(found, key=lambda each: each.since)

    def worker(self, worker_id: str) -> Worker:
        """Return the worker, or raise NotFound."""
        try:
            return self.workers[worker_id]
        except KeyError:
            raise NotFound(f"no worker {worker_id} in session {self.id}") from None

    def worker_in_role(self, role: str) -> Worker | None:
        """Return the worker that holds a role; None if it is free. A terminated worker holds no role."""
        for worker in self.workers.values():
            if worker.role == role and worker.state is not WorkerState.TERMINATED:
                return worker
        return None


def fold(snapshot: Snapshot, event: Event) -> Snapshot:
    """Return the session snapshot after one more event; raise Conflict if the event is not allowed next."""
    if event.seq != snapshot.last_seq + 1:
        raise Conflict(f"event {event.seq} cannot follow {snapshot.last_seq}")
    refusals = fold_refusals(snapshot.refusals, event)
    return replace(_apply(snapshot, event), last_seq=event.seq, updated_at=event.timestamp, refusals=refusals)


def fold_all(snapshot: Snapshot, events: Iterable[Event]) -> Snapshot:
    """Return the session snapshot after several events."""
    for event in events:
        snapshot = fold(snapshot, event)
    return snapshot


def _apply(snapshot: Snapshot, event: Event) -> Snapshot:
    """Return the snapshot after an event, still without its number and time."""
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
                founder=fact.founder,
                started_by=fact.started_by,
                sandbox=fact.sandbox,
            )
        case SessionChanged() as fact:
            return replace(
                snapshot,
                title=snapshot.title if fact.title is None else fact.title,
                on_last_disconnect=fact.on_last_disconnect or snapshot.on_last_disconnect,
            )
        case SessionEnd() | SessionReopened() as fact:
            return _with_status(snapshot, fact)
        case WorkerSpawning() as fact if event.worker_id not in snapshot.workers:
            return _with_worker(snapshot, _first_run(event, fact), event)
        case _ if event.worker_id is not None:
            before = snapshot.worker(event.worker_id)
            return _with_worker(snapshot, _changed_worker(before, event), event)
        case fact:
            queue = fold_queue(snapshot.queue, fact, event.timestamp)
            return snapshot if queue is snapshot.queue else replace(snapshot, queue=queue)


def _with_status(snapshot: Snapshot, fact: SessionEnd | SessionReopened) -> Snapshot:
    """Return the snapshot after the session has ended or was reopened."""
    status = next_status(snapshot.status, fact)
    metadata = {key: value for key, value in snapshot.metadata.items() if key != "reason"}
    reason = fact.reason if isinstance(fact, SessionEnd) else None
    if reason is not None:
        metadata["reason"] = reason
    return replace(snapshot, status=status, end_reason=reason, metadata=metadata)


def _with_worker(snapshot: Snapshot, worker: Worker, event: Event) -> Snapshot:
    """Return the snapshot with a changed worker and its conversation after the event."""
    workers = snapshot.workers | {worker.id: worker}
    if worker.type != "agent":
        return replace(snapshot, workers=workers)
    before = snapshot.conversations.get(worker.id, Conversation())
    conversation = fold_conversation(before, event)
    return replace(
        snapshot,
        workers=workers,
        conversations=snapshot.conversations | {worker.id: conversation},
        settled=_settled(snapshot.settled, event),
        founder=_founder(snapshot, event),
    )


def _settled(settled: tuple[str, ...], event: Event) -> tuple[str, ...]:
    """Return the ids of answered requests after the event."""
    match event.fact:
        case Permission() | Question() as fact if fact.status != "pending":
            return (*settled, fact.id)[-MAX_SETTLED:]
        case _:
            return settled


def _founder(snapshot: Snapshot, event: Event) -> str | None:
    """Return the id of the agent that the session was created with; None once it has answered."""
    answered = snapshot.founder == event.worker_id and shows_agent_answer(event.fact)
    return None if answered else snapshot.founder


def shows_agent_answer(fact: Fact) -> bool:
    """Return whether the fact shows that an agent has answered."""
    return isinstance(fact, ANSWERS) or (isinstance(fact, TurnEnd) and fact.stop_reason != "error")


def _first_run(event: Event, fact: WorkerSpawning) -> Worker:
    """Return the worker that its first WorkerSpawning event creates."""
    if event.worker_id is None:
        raise Conflict(f"event {event.seq} starts a worker without an id")
    return Worker(
        id=event.worker_id,
        type=fact.worker_type,
        name=fact.name,
        role=event.role or fact.name,
        workspace=fact.workspace,
        agent_id=fact.agent_id,
        agent_kind=fact.agent_kind,
        file_path=fact.file_path,
        url=None if fact.url is UNSET else fact.url,
        run=fact.run,
        cols=fact.cols,
        rows=fact.rows,
        sandbox=fact.sandbox,
        sandbox_asked=fact.sandbox_asked,
        created_at=event.timestamp,
        last_active_at=event.timestamp,
        activity_since=event.timestamp,
    )


def _changed_worker(worker: Worker, event: Event) -> Worker:
    """Return the worker after an event: its activity time, and its state, activity or command."""
    worker = replace(worker, last_active_at=event.timestamp)
    match event.fact:
        case WorkerActivity() as fact:
            return replace(
                worker,
                activity=Activity(fact.activity),
                activity_why=fact.why,
                activity_since=event.timestamp,
                by_hand=fact.by_hand and fact.activity != Activity.IDLE,
            )
        case WorkerCommand() as fact:
            return replace(worker, command=fact)
        case WorkerSpawning() | WorkerReady() | WorkerExited() | WorkerFailed() | WorkerTerminated():
            return _with_next_state(worker, event)
        case _:
            return worker


def _with_next_state(worker: Worker, event: Event) -> Worker:
    """Return the worker after an event that changes its state."""
    worker = replace(
        worker,
        state=next_state(worker.state, event.fact),
        activity=Activity.UNKNOWN,
        activity_since=event.timestamp,
        by_hand=False,
        again=isinstance(event.fact, WorkerFailed) and event.fact.again,
    )
    match event.fact:
        case WorkerSpawning() as fact:
            return replace(
                worker,
                run=fact.run,
                cols=fact.cols,
                rows=fact.rows,
                sandbox=fact.sandbox,
                sandbox_asked=fact.sandbox_asked,
                pid=None,
                exit_code=None,
                signal=None,
                error=None,
                activity_why="starting",
                restarts=(*worker.restarts, event.timestamp)[-MAX_RESTART_TIMES:]
                if fact.automatic
                else worker.restarts,
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
            return replace(worker, activity_why=worker_end_text(fact.reason))
        case _:
            return worker
