"""Decide what a session needs from the user, why and since when; every client shows this decision."""

from collections.abc import Container, Iterable, Sequence
from enum import StrEnum

from msgspec import Struct

from .inbox import InboxItem, open_items
from .reasons import end_reason_text, failure_text
from .snapshot import Snapshot, Worker
from .states import Activity, SessionStatus, WorkerState


class Need(StrEnum):
    """What a session needs, the most urgent first."""

    ASKING = "asking"
    ERROR = "error"
    DONE = "done"
    WORKING = "working"
    IDLE = "idle"


class Attention(Struct, frozen=True):
    """What a session needs, the reason as a text for the user, and the time since when in milliseconds."""

    need: Need
    why: str
    since: int


def attention_of(
    snapshot: Snapshot, unseen: Iterable[InboxItem] = (), programs: Sequence[str] = ()
) -> Attention:
    """Return what a session needs.

    `unseen`: its inbox items about results that no user has seen. `programs`: those that run in the
    foreground of its terminals.
    """
    results = {item.worker_id: item for item in unseen}
    failures = [item for item in results.values() if item.kind == "failed"]
    if snapshot.status is SessionStatus.ACTIVE:
        return _question(snapshot) or _failure(snapshot, failures) or _work(snapshot, results, programs)
    return _unseen_failure(snapshot, failures) or Attention(
        Need.IDLE, end_reason_text(snapshot.end_reason), snapshot.updated_at
    )


def _question(snapshot: Snapshot) -> Attention | None:
    """Return the open requests of the session's agents, since the oldest; None if no agent asks."""
    asking = next((worker for worker in _alive(snapshot) if worker.activity is Activity.ASKING), None)
    if asking is None:
        return None
    items = [item for item in open_items(snapshot) if item.needs_input]
    why = " · ".join(item.text for item in items) or asking.activity_why
    return Attention(Need.ASKING, why, min((item.since for item in items), default=asking.activity_since))


def _failure(snapshot: Snapshot, failures: list[InboxItem]) -> Attention | None:
    """Return the failed worker, or the failure that no user has seen, or None.

    Terminals of an agent do not count: the agent handles the failures of its own commands.
    """
    for worker in snapshot.workers.values():
        if worker.state is WorkerState.FAILED and worker.owner is None:
            return Attention(
                Need.ERROR, failure_text(worker.name, worker.error or "failed"), worker.activity_since
            )
    return _unseen_failure(snapshot, failures)


def _unseen_failure(snapshot: Snapshot, failures: list[InboxItem]) -> Attention | None:
    """Return the first failure that no user has seen; None if there is none."""
    for item in failures:
        return Attention(
            Need.ERROR, failure_text(snapshot.worker(item.worker_id).name, item.text), item.since
        )
    return None


def _work(snapshot: Snapshot, unseen_ids: Container[str], programs: Sequence[str]) -> Attention:
    """Return what the workers do: an agent works, its result was not seen, a program runs, or nothing."""
    alive = _alive(snapshot)
    working = [worker for worker in alive if _is_working(worker)]
    done = [worker for worker in alive if _is_idle_agent(worker) and worker.id in unseen_ids]
    for need, workers in ((Need.WORKING, working), (Need.DONE, done)):
        if workers:
            return Attention(need, workers[0].activity_why, workers[0].activity_since)
    since = alive[0].activity_since if alive else snapshot.updated_at
    if programs:
        return Attention(Need.WORKING, f"runs {programs[0]}", since)
    return Attention(Need.IDLE, alive[0].activity_why if alive else "nothing runs", since)


def _alive(snapshot: Snapshot) -> list[Worker]:
    """Return the workers that are spawning or active."""
    return [worker for worker in snapshot.workers.values() if worker.alive]


def _is_working(worker: Worker) -> bool:
    """Return whether a worker is an agent that starts or is in a turn."""
    busy = worker.activity is Activity.ACTIVE or worker.state is WorkerState.SPAWNING
    return worker.type == "agent" and busy


def _is_idle_agent(worker: Worker) -> bool:
    """Return whether a worker is an agent that is in no turn."""
    return worker.type == "agent" and worker.activity is Activity.IDLE
