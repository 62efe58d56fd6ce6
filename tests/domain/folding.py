"""Build snapshots of sessions from facts, for tests of the domain."""

from bullpen.domain.events import Draft, Event, Fact, SessionStart, WorkerReady, WorkerSpawning
from bullpen.domain.snapshot import Snapshot, fold

START = SessionStart(session_type="quick", location_path="/srv", title="x", repo_id="repo")


def spawning(type: str = "agent", **more: object) -> WorkerSpawning:
    fields = {"worker_type": type, "name": type.capitalize(), "run": 1, "workspace": "/srv"} | more
    return WorkerSpawning(**fields)  # type: ignore[arg-type]


def running(worker_id: str, role: str, type: str = "agent", **more: object) -> list[Draft]:
    """Return the facts of a worker that has started."""
    return [
        Draft(spawning(type, **more), worker_id, role),
        Draft(WorkerReady(pid=7), worker_id, role),
    ]


def about(worker_id: str, *facts: Fact) -> list[Draft]:
    return [Draft(fact, worker_id, "role") for fact in facts]


def session(*drafts: Draft | Fact, start: Fact = START) -> Snapshot:
    """Return a session whose event n happened in second n."""
    return after(Snapshot(id="s"), start, *drafts)


def after(snapshot: Snapshot, *drafts: Draft | Fact) -> Snapshot:
    for each in drafts:
        draft = each if isinstance(each, Draft) else Draft(each)
        seq = snapshot.last_seq + 1
        snapshot = fold(snapshot, Event(seq, seq * 1000, draft.fact, draft.worker_id, draft.role))
    return snapshot
