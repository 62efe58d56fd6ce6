"""Which worker holds a role, and how another worker takes the role over."""

import pytest

from bullpen.domain.commands import REPLACED, AddWorker, start_in_role
from bullpen.domain.errors import Conflict, Invalid
from bullpen.domain.events import Draft, Event, SessionStart, WorkerFailed, WorkerSpawning, WorkerTerminated
from bullpen.domain.snapshot import Snapshot, fold_all
from bullpen.domain.states import WorkerState

SESSION = fold_all(
    Snapshot(id="s"), [Event(1, 0, SessionStart(session_type="quick", location_path="/srv", title="x"))]
)


def order(worker_id: str = "w", workspace: str = "/srv/a", **more: str) -> AddWorker:
    fields = {"type": "agent", "role": "auth", "agent_id": "claude"} | more
    return AddWorker(worker_id=worker_id, workspace=workspace, **fields)  # type: ignore[arg-type]


def after(snapshot: Snapshot, drafts: list[Draft]) -> Snapshot:
    first = snapshot.last_seq + 1
    return fold_all(
        snapshot,
        [Event(seq, seq, each.fact, each.worker_id, each.role) for seq, each in enumerate(drafts, first)],
    )


FAILED = after(SESSION, start_in_role(SESSION, order(), "no such place"))


def test_an_agent_that_cannot_start_is_recorded_as_failed_with_its_role() -> None:
    worker = FAILED.worker("w")
    assert (worker.state, worker.error, worker.role) == (WorkerState.FAILED, "no such place", "auth")


def test_a_running_agent_keeps_its_role() -> None:
    living = after(SESSION, start_in_role(SESSION, order()))
    with pytest.raises(Conflict):
        start_in_role(living, order("other", workspace="/srv/b"))


def test_the_same_agent_in_the_same_workspace_stays_the_same_worker() -> None:
    (again,) = start_in_role(FAILED, order("other"))
    assert isinstance(again.fact, WorkerSpawning)
    assert (again.worker_id, again.fact.run) == ("w", 2)


@pytest.mark.parametrize("wanted", [order("v", workspace="/srv/b"), order("v", agent_id="codex")])
def test_another_agent_or_workspace_takes_the_role_over(wanted: AddWorker) -> None:
    gone, fresh = start_in_role(FAILED, wanted)
    assert (gone.fact, gone.worker_id) == (WorkerTerminated(reason=REPLACED), "w")
    assert (fresh.worker_id, fresh.role) == ("v", "auth")
    session = after(FAILED, [gone, fresh])
    assert session.worker_in_role("auth") == session.worker("v")


def test_another_document_takes_the_role_over() -> None:
    document = order(type="markdown", agent_id="", file_path="a.md")
    failed = after(SESSION, start_in_role(SESSION, document, "not there"))
    gone, fresh = start_in_role(failed, order("v", type="markdown", agent_id="", file_path="b.md"))
    assert (gone.worker_id, fresh.worker_id) == ("w", "v")
    with pytest.raises(Invalid, match="filePath"):
        start_in_role(failed, order("v", type="markdown", agent_id=""))


def test_a_role_whose_start_fails_twice_has_two_failed_workers() -> None:
    drafts = start_in_role(FAILED, order("v", workspace="/srv/b"), "not there either")
    assert isinstance(drafts[-1].fact, WorkerFailed)
    assert [worker.state for worker in after(FAILED, drafts).workers.values()] == [
        WorkerState.TERMINATED,
        WorkerState.FAILED,
    ]


def test_an_agent_needs_a_role() -> None:
    with pytest.raises(Invalid):
        start_in_role(SESSION, order(role=" "))
