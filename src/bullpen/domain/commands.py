"""Decide what a command to a session does: return the drafts of its events, or raise why it is refused.

Every decision is a plain function of the snapshot. It can be tested without a server, and the log calls it
while no other change is made.
"""

from collections.abc import Iterable, Sequence

from msgspec import UNSET, Struct

from .conversation import ConversationReset, TurnEnd
from .conversation_rules import cancel_open_items
from .errors import Conflict, Invalid
from .events import (
    Draft,
    SessionChanged,
    SessionEnd,
    SessionReopened,
    WorkerCommand,
    WorkerExited,
    WorkerFailed,
    WorkerSpawning,
    WorkerTerminated,
)
from .sandbox import SandboxLevel
from .snapshot import Snapshot, Worker
from .states import SessionStatus, WorkerState

WORKER_TYPES = ("agent", "terminal", "diff", "markdown", "web")
LAST_DISCONNECT = ("keep", "terminate")
MAX_ROLE_LENGTH = 64
MAX_TITLE_LENGTH = 200
MAX_COMMAND_NAME_LENGTH = 40
REPLACED = "replaced"  # reason: another worker took over the role
IDLE = "idle_timeout"  # reason: the session was idle for too long


class AddWorker(Struct, frozen=True, kw_only=True):
    """The command to start a worker.

    If the role is held by a worker that failed or exited, that worker is restarted. A role whose worker is
    alive is refused.
    """

    worker_id: str
    type: str
    workspace: str
    name: str | None = None
    role: str | None = None
    agent_id: str | None = None
    agent_kind: str | None = None
    file_path: str | None = None
    url: str | None = None  # as `check_local_url` returns it
    command: tuple[str, ...] = ()  # what a terminal runs in place of a shell
    cols: int = 80
    rows: int = 24
    sandbox: SandboxLevel | None = None  # the level that is requested


def add_worker(snapshot: Snapshot, order: AddWorker) -> Draft:
    """Return the draft that starts a new worker, or the next run of the worker that holds the role.

    Raise Conflict if the session has ended, or a worker of another type holds the role.
    """
    require_active(snapshot)
    _check_order(order)
    name = check_text("name", order.name or _default_name(order), MAX_ROLE_LENGTH)
    if order.role is not None:
        role = check_text("role", order.role, MAX_ROLE_LENGTH)
        if holder := snapshot.worker_in_role(role):
            if holder.type != order.type:
                raise Conflict(f"the role {role} belongs to a worker of type {holder.type}")
            return restart_worker(snapshot, holder.id, order.cols, order.rows, sandbox=order.sandbox)
    else:
        wanted = command_name(order.command[:1]) if order.command and order.name is None else name
        role = free_role(snapshot, wanted.lower())
    return _first_run(order, name, role)


def start_worker(snapshot: Snapshot, order: AddWorker) -> list[Draft]:
    """Return drafts that start a worker, in its role if the order names one, with the command it runs."""
    drafts = start_in_role(snapshot, order) if order.role is not None else [add_worker(snapshot, order)]
    spawning = drafts[-1]
    if order.command and spawning.worker_id == order.worker_id:
        drafts.append(Draft(WorkerCommand(argv=order.command), spawning.worker_id, spawning.role))
    return drafts


def command_name(argv: Sequence[str]) -> str:
    """Return a short readable name for a command; of `sh -c` the script is used."""
    is_script = len(argv) > 2 and argv[1] in ("-c", "-lc")
    words = argv[2:] if is_script else (argv[0].rpartition("/")[2], *argv[1:])
    text = "".join(letter if letter.isprintable() else " " for letter in " ".join(words))
    return " ".join(text.split())[:MAX_COMMAND_NAME_LENGTH].strip() or "Terminal"


def start_in_role(snapshot: Snapshot, order: AddWorker, failure: str | None = None) -> list[Draft]:
    """Return drafts that start a worker in a role; an ended worker with other settings is replaced.

    With `failure`, the worker fails at once with this text: it could not even be started.
    """
    require_active(snapshot)
    _check_order(order)
    holder = snapshot.worker_in_role(check_text("role", order.role or "", MAX_ROLE_LENGTH))
    if holder is None or holder.alive or holder.type != order.type or _same_settings(holder, order):
        drafts = [add_worker(snapshot, order)]
    else:
        terminated = Draft(WorkerTerminated(reason=REPLACED), holder.id, holder.role)
        drafts = [terminated, _first_run(order, order.name or holder.name, holder.role)]
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
    sandbox: SandboxLevel | None = None,
) -> Draft:
    """Return the draft that starts the next run of a worker.

    Raise Conflict if the worker has not ended, or another worker has its role.

    `automatic`: no user ordered the restart. An agent continues its conversation. `sandbox` is a newly
    requested level.
    """
    require_active(snapshot)
    worker = snapshot.worker(worker_id)
    if worker.alive:
        raise Conflict(
            f"the worker in role {worker.role} is {worker.state}; only one that ended can be restarted"
        )
    if snapshot.worker_in_role(worker.role) not in (None, worker):
        raise Conflict(f"another worker has taken the role {worker.role}, so this one cannot be restarted")
    fact = WorkerSpawning(
        worker_type=worker.type,
        name=worker.name,
        run=worker.run + 1,
        workspace=worker.workspace,
        agent_id=worker.agent_id,
        agent_kind=worker.agent_kind,
        file_path=worker.file_path,
        url=worker.url or UNSET,
        cols=cols or worker.cols,
        rows=rows or worker.rows,
        automatic=automatic,
        sandbox_asked=sandbox or worker.sandbox_asked,
    )
    return Draft(fact, worker.id, worker.role)


def restart_with_new_conversation(snapshot: Snapshot, worker_id: str) -> list[Draft]:
    """Return drafts that restart an agent without its earlier conversation."""
    spawning = restart_worker(snapshot, worker_id)
    return [spawning, Draft(ConversationReset(), spawning.worker_id, spawning.role)]


def end_run_for_restart(snapshot: Snapshot, worker_id: str) -> list[Draft]:
    """Return drafts that end the run of an agent which is about to be restarted; none if it has ended."""
    require_active(snapshot)
    worker = snapshot.worker(worker_id)
    if not worker.alive:
        return []
    began = worker.state is WorkerState.ACTIVE
    fact = WorkerExited() if began else WorkerFailed(error="it was restarted before it was ready")
    return [*_closing_drafts(snapshot, worker, "restarted"), Draft(fact, worker.id, worker.role)]


def end_worker(snapshot: Snapshot, worker_id: str, reason: str) -> list[Draft]:
    """Return drafts that terminate a worker and the terminals it owns; none if it is terminated already."""
    return _termination_drafts(snapshot, [snapshot.worker(worker_id)], reason)


def end_session(
    snapshot: Snapshot, status: SessionStatus, reason: str, detail: str | None = None
) -> list[Draft]:
    """Return drafts that end a session and its workers; none if it has ended with the same status already."""
    if snapshot.status is status:
        return []
    require_active(snapshot)
    drafts = _termination_drafts(snapshot, [w for w in snapshot.workers.values() if w.alive], reason)
    return [*drafts, Draft(SessionEnd(status=status, reason=reason, detail=detail))]


def reopen_session(snapshot: Snapshot) -> list[Draft]:
    """Return the draft that makes an ended session active again; none if it is active."""
    return [] if snapshot.status is SessionStatus.ACTIVE else [Draft(SessionReopened())]


def change_session(snapshot: Snapshot, title: str | None, on_last_disconnect: str | None) -> list[Draft]:
    """Return the draft that changes the title or `on_last_disconnect`; none if both stay the same."""
    if title is not None:
        title = check_text("title", title, MAX_TITLE_LENGTH)
    if on_last_disconnect is not None:
        check_last_disconnect(on_last_disconnect)
    if title in (None, snapshot.title) and on_last_disconnect in (None, snapshot.on_last_disconnect):
        return []
    return [Draft(SessionChanged(title=title, on_last_disconnect=on_last_disconnect))]


def require_active(snapshot: Snapshot) -> None:
    """Raise Conflict if the session has ended."""
    if snapshot.status is not SessionStatus.ACTIVE:
        raise Conflict(f"the session is {snapshot.status} and takes no more orders")


def free_role(snapshot: Snapshot, wanted: str) -> str:
    """Return the wanted role, or the first of wanted-2, wanted-3 … that no worker holds."""
    role, number = wanted, 1
    while snapshot.worker_in_role(role):
        number += 1
        role = f"{wanted}-{number}"
    return role


def check_text(what: str, text: str, max_length: int) -> str:
    """Return the stripped text, or raise Invalid unless it is one printable line.

    `what` names it in the error.
    """
    text = text.strip()
    if not text:
        raise Invalid(f"a {what} must not be empty")
    if len(text) > max_length:
        raise Invalid(f"a {what} has at most {max_length} characters")
    if not text.isprintable():
        raise Invalid(f"a {what} must be one line of printable characters")
    return text


def check_size(cols: int, rows: int) -> None:
    """Raise Invalid unless a terminal can have this size."""
    if not (1 <= cols <= 1000 and 1 <= rows <= 1000):
        raise Invalid("a terminal has 1 to 1000 columns and rows")


def check_last_disconnect(value: str) -> str:
    """Return the value, or raise Invalid if it is not a choice for `onLastDisconnect`."""
    if value not in LAST_DISCONNECT:
        raise Invalid(f"onLastDisconnect is one of {', '.join(LAST_DISCONNECT)}, not {value}")
    return value


def _check_order(order: AddWorker) -> None:
    """Raise Invalid if the order is invalid by itself, whichever worker holds the role."""
    if order.type not in WORKER_TYPES:
        raise Invalid(f"a worker's type is one of {', '.join(WORKER_TYPES)}, not {order.type}")
    if order.type == "markdown" and not order.file_path:
        raise Invalid("a document needs the path of its file (filePath)")
    if order.type == "web" and not order.url:
        raise Invalid("a web worker needs the address of its page (url)")
    if order.type != "web" and order.url:
        raise Invalid(f"only a web worker has a url, not a worker of type {order.type}")
    if order.command:
        _check_command(order)
    check_size(order.cols, order.rows)
    if order.name is not None:
        check_text("name", order.name, MAX_ROLE_LENGTH)


def _check_command(order: AddWorker) -> None:
    """Raise Invalid unless the worker can run its command."""
    if order.type != "terminal":
        raise Invalid(f"only a terminal runs a command, not a worker of type {order.type}")
    if not order.command[0]:
        raise Invalid("a command must not begin with an empty text")
    if any("\0" in each for each in order.command):
        raise Invalid("a command must not contain NUL")


def _default_name(order: AddWorker) -> str:
    """Return the name of a worker without one: its command or its type."""
    return command_name(order.command) if order.command else order.type.capitalize()


def _first_run(order: AddWorker, name: str, role: str) -> Draft:
    """Return the draft that starts the first run of a new worker."""
    fact = WorkerSpawning(
        worker_type=order.type,
        name=name,
        run=1,
        workspace=order.workspace,
        agent_id=order.agent_id,
        agent_kind=order.agent_kind,
        file_path=order.file_path,
        url=order.url or UNSET,
        cols=order.cols,
        rows=order.rows,
        sandbox_asked=order.sandbox,
    )
    return Draft(fact, order.worker_id, role)


def _same_settings(worker: Worker, order: AddWorker) -> bool:
    """Return whether the worker has the agent, workspace, file, page, command and sandbox of the order."""
    ordered = (order.agent_id, order.workspace, order.file_path, order.url)
    if order.sandbox not in (None, worker.sandbox_asked):
        return False
    same_command = not order.command or (worker.command is not None and worker.command.argv == order.command)
    return same_command and (worker.agent_id, worker.workspace, worker.file_path, worker.url) == ordered


def _termination_drafts(snapshot: Snapshot, workers: Iterable[Worker], reason: str) -> list[Draft]:
    """Return drafts that end each worker once, after its open requests and its terminals."""
    drafts: list[Draft] = []
    ended: set[str] = set()
    for worker in workers:
        if worker.state is WorkerState.TERMINATED or worker.id in ended:
            continue
        for draft in [
            *_closing_drafts(snapshot, worker, reason),
            Draft(WorkerTerminated(reason=reason), worker.id, worker.role),
        ]:
            if isinstance(draft.fact, WorkerTerminated):
                if draft.worker_id in ended:
                    continue
                ended.add(draft.worker_id or "")
            drafts.append(draft)
    return drafts


def _closing_drafts(snapshot: Snapshot, worker: Worker, reason: str) -> list[Draft]:
    """Return drafts that close what an agent leaves open: questions, tool calls, its turn, its terminals."""
    conversation = snapshot.conversations.get(worker.id)
    if conversation is None or not worker.alive:
        return []
    facts = cancel_open_items(conversation, by=reason)
    if conversation.turn is not None:
        facts.append(TurnEnd(stop_reason="cancelled"))
    owned = [w for w in snapshot.workers.values() if w.alive and w.owner == worker.id]
    return [
        *(Draft(fact, worker.id, worker.role) for fact in facts),
        *(Draft(WorkerTerminated(reason=reason), w.id, w.role) for w in owned),
    ]
