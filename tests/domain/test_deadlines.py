"""The deadlines of a session."""

from bullpen.domain.conversation import NoticeSent, Permission, TurnStart
from bullpen.domain.deadlines import CancelDeadline, PermissionDeadline, TimeoutSettings, deadlines
from bullpen.domain.events import Event, Fact, SessionStart, WorkerReady, WorkerSpawning, WorkerTerminated
from bullpen.domain.snapshot import Snapshot, fold

ASKED = Permission(id="p", tool_call={}, options=[], status="pending")
TURN = TurnStart(prompt_id="t")
CANCEL = NoticeSent(n=1, method="session/cancel")
BOTH = TimeoutSettings(permission=5, cancel=30)


def session(*facts: Fact) -> Snapshot:
    snapshot = Snapshot(id="s")
    start = SessionStart(session_type="quick", location_path="/", title="x")
    spawning = WorkerSpawning(worker_type="agent", name="Agent", run=1, workspace="/")
    for fact in (start, spawning, WorkerReady(pid=1), *facts):
        seq = snapshot.last_seq + 1
        snapshot = fold(snapshot, Event(seq, seq * 1000, fact, *(("w", "agent") if seq > 1 else ())))
    return snapshot


def test_a_permission_has_a_deadline_after_its_timeout() -> None:
    assert list(deadlines(session(TURN, ASKED), BOTH)) == [PermissionDeadline("p", 10_000)]


def test_a_cancelled_turn_has_a_deadline_until_it_ends() -> None:
    assert list(deadlines(session(TURN), BOTH)) == []
    assert list(deadlines(session(TURN, CANCEL), BOTH)) == [CancelDeadline("w", "t", 30)]
    assert list(deadlines(session(TURN, CANCEL, WorkerTerminated(reason="x")), BOTH)) == []


def test_without_timeouts_there_are_no_deadlines() -> None:
    assert list(deadlines(session(TURN, ASKED, CANCEL), TimeoutSettings())) == []
