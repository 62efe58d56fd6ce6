"""Orders a session can be given, and what each comes to: drafts of facts, or a refusal.

Every decision is a plain function of the snapshot, so it can be tested without a server and made
while the log holds still.
"""

from collections.abc import Iterable

from msgspec import Struct

from .errors import Conflict, Invalid
from .events import (
    Draft,
    SessionChanged,
    SessionEnd,
    WorkerSpawning,
    WorkerTerminated,
)
from .snapshot import Snapshot, Worker
from .states import State, Status

WORKER_TYPES = ("agent", "terminal", "diff", "markdown")
LAST_DISCONNECT = ("keep", "terminate")
MAX_ROLE = 64
MAX_TITLE = 200


class AddWorker(Struct, frozen=True, kw_only=True):
    """Start a worker. A role that failed or ended is started again; a living one is refused."""

    worker_id: str
    type: str
    workspace: str
    name: str | None = None
    role: str | None = None
    agent_id: str | None = None
    file_path: str | None = None
    cols: int = 80
    rows: int = 24


def add_worker(snapshot: Snapshot, order: AddWorker) -> Draft:
    """The spawning of a new worker, or of the one that holds the wanted role."""
    require_active(snapshot)
    if order.type not in WORKER_TYPES:
        raise Invalid(f"a worker's type is one of {', '.join(WORKER_TYPES)}, not {order.type}")
    check_size(order.cols, order.rows)
    name = check_text("name", order.name or order.type.capitalize(), MAX_ROLE)
    if order.role is not None:
        role = check_text("role", order.role, MAX_ROLE)
        if holder := snapshot.in_role(role):
            if holder.type != order.type:
                raise Conflict(f"the role {role} belongs to a {holder.type}")
            return restart_worker(snapshot, holder.id, order.cols, order.rows)
    else:
        role = free_role(snapshot, name.lower())
    fact = WorkerSpawning(
        worker_type=order.type,
        name=name,
        run=1,
        workspace=order.workspace,
        agent_id=order.agent_id,
        file_path=order.file_path,
        cols=order.cols,
        rows=order.rows,
    )
    return Draft(fact, order.worker_id, role)


def restart_worker(
    snapshot: Snapshot, worker_id: str, cols: int | None = None, rows: int | None = None
) -> Draft:
    """The next run of a worker that failed or ended."""
    require_active(snapshot)
    worker = snapshot.worker(worker_id)
    if worker.state not in (State.EXITED, State.FAILED):
        raise Conflict(
            f"the worker in role {worker.role} is {worker.state}; only one that ended can be restarted"
        )
    fact = WorkerSpawning(
        worker_type=worker.type,
        name=worker.name,
        run=worker.run + 1,
        workspace=worker.workspace,
        agent_id=worker.agent_id,
        file_path=worker.file_path,
        cols=cols or worker.cols,
        rows=rows or worker.rows,
    )
    return Draft(fact, worker.id, worker.role)


def end_worker(snapshot: Snapshot, worker_id: str, reason: str) -> list[Draft]:
    """The end of one worker; nothing when it was ended before."""
    return _terminated([snapshot.worker(worker_id)], reason)


def end_session(snapshot: Snapshot, status: Status, reason: str, detail: str | None = None) -> list[Draft]:
    """The end of a session and of every worker in it; nothing when it ended the same way before."""
    if snapshot.status is status:
        return []
    require_active(snapshot)
    drafts = _terminated((w for w in snapshot.workers.values() if w.alive), reason)
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
    if snapshot.status is not Status.ACTIVE:
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


def _terminated(workers: Iterable[Worker], reason: str) -> list[Draft]:
    return [
        Draft(WorkerTerminated(reason=reason), worker.id, worker.role)
        for worker in workers
        if worker.state is not State.TERMINATED
    ]
