"""Orders a session can be given, and what each comes to: drafts of facts, or a refusal.

Every decision is a plain function of the snapshot, so it can be tested without a server and made
while the log holds still.
"""

from collections.abc import Iterable

from msgspec import Struct

from .conversation import ConversationReset, TurnEnd
from .conversation_rules import loose_ends
from .errors import Conflict, Invalid
from .events import (
    Draft,
    SessionChanged,
    SessionEnd,
    WorkerExited,
    WorkerFailed,
    WorkerSpawning,
    WorkerTerminated,
)
from .snapshot import Snapshot, Worker
from .states import SessionStatus, WorkerState

WORKER_TYPES = ("agent", "terminal", "diff", "markdown")
LAST_DISCONNECT = ("keep", "terminate")
MAX_ROLE = 64
MAX_TITLE = 200
REPLACED = "replaced"  # why a worker gave its role to another
IDLE = "idle_timeout"  # why a session ended that nobody ended


class AddWorker(Struct, frozen=True, kw_only=True):
    """Start a worker. A role that failed or ended is started again or taken over; a living one is refused."""

    worker_id: str
    type: str
    workspace: str
    name: str | None = None
    role: str | None = None
    agent_id: str | None = None
    agent_kind: str | None = None
    file_path: str | None = None
    cols: int = 80
    rows: int = 24


def add_worker(snapshot: Snapshot, order: AddWorker) -> Draft:
    """The spawning of a new worker, or of the one that holds the wanted role."""
    require_active(snapshot)
    _check(order)
    name = check_text("name", order.name or order.type.capitalize(), MAX_ROLE)
    if order.role is not None:
        role = check_text("role", order.role, MAX_ROLE)
        if holder := snapshot.in_role(role):
            if holder.type != order.type:
                raise Conflict(f"the role {role} belongs to a {holder.type}")
            return restart_worker(snapshot, holder.id, order.cols, order.rows)
    else:
        role = free_role(snapshot, name.lower())
    return _first_run(order, name, role)


def take_role(snapshot: Snapshot, order: AddWorker, failure: str | None = None) -> list[Draft]:
    """A worker for a role: the one that ended there when it is the same, else another in its place.

    `failure` says why it cannot even begin; then that is its whole life.
    """
    require_active(snapshot)
    _check(order)
    holder = snapshot.in_role(check_text("role", order.role or "", MAX_ROLE))
    if holder is None or holder.alive or holder.type != order.type or _is_like(holder, order):
        drafts = [add_worker(snapshot, order)]
    else:
        gone = Draft(WorkerTerminated(reason=REPLACED), holder.id, holder.role)
        drafts = [gone, _first_run(order, order.name or holder.name, holder.role)]
    if failure is not None:
        drafts.append(Draft(WorkerFailed(error=failure), drafts[-1].worker_id, drafts[-1].role))
    return drafts


def restart_worker(
    snapshot: Snapshot,
    worker_id: str,
    cols: int | None = None,
    rows: int | None = None,
    *,
    automatic: bool = False,
) -> Draft:
    """The next run of a worker that failed or ended; an agent goes back to its conversation."""
    require_active(snapshot)
    worker = snapshot.worker(worker_id)
    if worker.state not in (WorkerState.EXITED, WorkerState.FAILED):
        raise Conflict(
            f"the worker in role {worker.role} is {worker.state}; only one that ended can be restarted"
        )
    fact = WorkerSpawning(
        worker_type=worker.type,
        name=worker.name,
        run=worker.run + 1,
        workspace=worker.workspace,
        agent_id=worker.agent_id,
        agent_kind=worker.agent_kind,
        file_path=worker.file_path,
        cols=cols or worker.cols,
        rows=rows or worker.rows,
        automatic=automatic,
    )
    return Draft(fact, worker.id, worker.role)


def begin_anew(snapshot: Snapshot, worker_id: str) -> list[Draft]:
    """The next run of an agent, which knows nothing of what was said before."""
    spawning = restart_worker(snapshot, worker_id)
    return [spawning, Draft(ConversationReset(), spawning.worker_id, spawning.role)]


def halt_agent(snapshot: Snapshot, worker_id: str) -> list[Draft]:
    """The end of an agent's run that is to be followed by another; nothing when it has ended."""
    require_active(snapshot)
    worker = snapshot.worker(worker_id)
    if not worker.alive:
        return []
    began = worker.state is WorkerState.ACTIVE
    fact = WorkerExited() if began else WorkerFailed(error="it was restarted before it was ready")
    return [*_closed(snapshot, worker, "restarted"), Draft(fact, worker.id, worker.role)]


def end_worker(snapshot: Snapshot, worker_id: str, reason: str) -> list[Draft]:
    """The end of one worker, and of what it runs; nothing when it was ended before."""
    return _terminated(snapshot, [snapshot.worker(worker_id)], reason)


def end_session(
    snapshot: Snapshot, status: SessionStatus, reason: str, detail: str | None = None
) -> list[Draft]:
    """The end of a session and of every worker in it; nothing when it ended the same way before."""
    if snapshot.status is status:
        return []
    require_active(snapshot)
    drafts = _terminated(snapshot, [w for w in snapshot.workers.values() if w.alive], reason)
    return [*drafts, Draft(SessionEnd(status=status, reason=reason, detail=detail))]


def change_session(snapshot: Snapshot, title: str | None, on_last_disconnect: str | None) -> list[Draft]:
    if title is not None:
        title = check_text("title", title, MAX_TITLE)
    if on_last_disconnect is not None:
        check_last_disconnect(on_last_disconnect)
    if title in (None, snapshot.title) and on_last_disconnect in (None, snapshot.on_last_disconnect):
        return []
    return [Draft(SessionChanged(title=title, on_last_disconnect=on_last_disconnect))]


def require_active(snapshot: Snapshot) -> None:
    if snapshot.status is not SessionStatus.ACTIVE:
        raise Conflict(f"the session is {snapshot.status} and takes no more orders")


def free_role(snapshot: Snapshot, wanted: str) -> str:
    """The wanted role, or the first of wanted-2, wanted-3 … that nobody holds."""
    role, number = wanted, 1
    while snapshot.in_role(role):
        number += 1
        role = f"{wanted}-{number}"
    return role


def check_text(what: str, text: str, longest: int) -> str:
    """One line a person can read, or Invalid."""
    text = text.strip()
    if not text:
        raise Invalid(f"a {what} must not be empty")
    if len(text) > longest:
        raise Invalid(f"a {what} has at most {longest} characters")
    if not text.isprintable():
        raise Invalid(f"a {what} must be one line of printable characters")
    return text


def check_size(cols: int, rows: int) -> None:
    if not (1 <= cols <= 1000 and 1 <= rows <= 1000):
        raise Invalid("a terminal has 1 to 1000 columns and rows")


def check_last_disconnect(value: str) -> str:
    if value not in LAST_DISCONNECT:
        raise Invalid(f"onLastDisconnect is one of {', '.join(LAST_DISCONNECT)}, not {value}")
    return value


def _check(order: AddWorker) -> None:
    """Invalid when it makes no sense, whoever holds its role."""
    if order.type not in WORKER_TYPES:
        raise Invalid(f"a worker's type is one of {', '.join(WORKER_TYPES)}, not {order.type}")
    if order.type == "markdown" and not order.file_path:
        raise Invalid("a document needs the path of its file (filePath)")
    check_size(order.cols, order.rows)
    if order.name is not None:
        check_text("name", order.name, MAX_ROLE)


def _first_run(order: AddWorker, name: str, role: str) -> Draft:
    fact = WorkerSpawning(
        worker_type=order.type,
        name=name,
        run=1,
        workspace=order.workspace,
        agent_id=order.agent_id,
        agent_kind=order.agent_kind,
        file_path=order.file_path,
        cols=order.cols,
        rows=order.rows,
    )
    return Draft(fact, order.worker_id, role)


def _is_like(worker: Worker, order: AddWorker) -> bool:
    same = (order.agent_id, order.workspace, order.file_path)
    return (worker.agent_id, worker.workspace, worker.file_path) == same


def _terminated(snapshot: Snapshot, workers: Iterable[Worker], reason: str) -> list[Draft]:
    """Each once, and after everything that it leaves open."""
    drafts: list[Draft] = []
    ended: set[str] = set()
    for worker in workers:
        if worker.state is WorkerState.TERMINATED or worker.id in ended:
            continue
        for draft in [
            *_closed(snapshot, worker, reason),
            Draft(WorkerTerminated(reason=reason), worker.id, worker.role),
        ]:
            if isinstance(draft.fact, WorkerTerminated):
                if draft.worker_id in ended:
                    continue
                ended.add(draft.worker_id or "")
            drafts.append(draft)
    return drafts


def _closed(snapshot: Snapshot, worker: Worker, reason: str) -> list[Draft]:
    """What an agent leaves open when it ends: questions, tool calls, its turn, its terminals."""
    conversation = snapshot.conversations.get(worker.id)
    if conversation is None or not worker.alive:
        return []
    facts = loose_ends(conversation, by=reason)
    if conversation.turn is not None:
        facts.append(TurnEnd(stop_reason="cancelled"))
    owned = [w for w in snapshot.workers.values() if w.alive and w.owner == worker.id]
    return [
        *(Draft(fact, worker.id, worker.role) for fact in facts),
        *(Draft(WorkerTerminated(reason=reason), w.id, w.role) for w in owned),
    ]
