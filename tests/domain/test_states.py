"""Every pair of a state and an event is either a step of the tables or a refusal that changes nothing."""

import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest

from bullpen.domain.errors import Conflict
from bullpen.domain.events import (
    FACTS,
    Error,
    Event,
    Fact,
    SandboxRefusal,
    SandboxRefusalSeen,
    SessionChanged,
    SessionEnd,
    SessionImported,
    SessionReopened,
    SessionStart,
    Unknown,
    WorkerActivity,
    WorkerCommand,
    WorkerExited,
    WorkerFailed,
    WorkerReady,
    WorkerSpawning,
    WorkerTerminated,
)
from bullpen.domain.snapshot import Snapshot, fold, fold_all
from bullpen.domain.states import (
    ALIVE,
    Activity,
    SessionStatus,
    WorkerState,
    next_state,
    next_status,
    panel_status,
    relay_agent_state,
    relay_session_state,
)

ROOT = Path(__file__).parents[2]

EXAMPLES: dict[str, Fact] = {
    fact.type: fact
    for fact in (
        SessionStart(session_type="quick", location_path="/", title="x"),
        SessionImported(original_id="x", created_at="2025-01-01T00:00:00.000Z"),
        SessionChanged(title="y"),
        SessionEnd(status="completed", reason="user_request"),
        SessionReopened(),
        WorkerSpawning(worker_type="terminal", name="Shell", run=2, workspace="/"),
        WorkerCommand(argv=("true",)),
        WorkerReady(pid=7),
        WorkerExited(exit_code=0),
        WorkerFailed(error="broken"),
        WorkerTerminated(reason="user_request"),
        WorkerActivity(activity="idle", why="quiet"),
        Error(message="oh"),
        SandboxRefusal(kind="host", target="example.org", program="curl"),
        SandboxRefusalSeen(kind="host", target="example.org"),
    )
}

# The steps of a worker, repeated here on purpose to check the tables.
STEPS = {
    ("spawning", "worker_ready"): "active",
    ("spawning", "worker_failed"): "failed",
    ("spawning", "worker_terminated"): "terminated",
    ("active", "worker_exited"): "exited",
    ("active", "worker_failed"): "failed",
    ("active", "worker_terminated"): "terminated",
    ("exited", "worker_spawning"): "spawning",
    ("exited", "worker_terminated"): "terminated",
    ("failed", "worker_spawning"): "spawning",
    ("failed", "worker_terminated"): "terminated",
    ("terminated", "worker_spawning"): "spawning",
}
LIFE_EVENTS = ("worker_spawning", "worker_ready", "worker_exited", "worker_failed", "worker_terminated")
EVENTS_TO = {  # from the first spawning to each state
    WorkerState.SPAWNING: [],
    WorkerState.ACTIVE: ["worker_ready"],
    WorkerState.EXITED: ["worker_ready", "worker_exited"],
    WorkerState.FAILED: ["worker_failed"],
    WorkerState.TERMINATED: ["worker_terminated"],
}


def session_with_worker(state: WorkerState) -> Snapshot:
    names = ["session_start", "worker_spawning", *EVENTS_TO[state]]
    facts = [EXAMPLES[name] for name in names]
    events = [
        Event(seq, seq, fact, *(("w", "shell") if fact.type in LIFE_EVENTS else ()))
        for seq, fact in enumerate(facts, 1)
    ]
    return fold_all(Snapshot(id="s"), events)


def test_every_fact_has_an_example_in_this_file() -> None:
    ours = {name for name, fact in FACTS.items() if fact.__module__ == "bullpen.domain.events"}
    assert ours - {Unknown.type} <= set(EXAMPLES)


@pytest.mark.parametrize(("state", "name"), list(product(WorkerState, sorted(EXAMPLES))))
def test_a_worker_takes_the_steps_of_the_table_and_no_other(state: WorkerState, name: str) -> None:
    fact = EXAMPLES[name]
    expected = STEPS.get((state, name))
    if expected is None:
        with pytest.raises(Conflict, match=f"{state} cannot take {name}"):
            next_state(state, fact)
    else:
        assert next_state(state, fact) == expected


@pytest.mark.parametrize(("state", "name"), list(product(WorkerState, LIFE_EVENTS)))
def test_the_fold_refuses_what_the_table_refuses(state: WorkerState, name: str) -> None:
    snapshot = session_with_worker(state)
    before = snapshot.worker("w")
    event = Event(snapshot.last_seq + 1, 99, EXAMPLES[name], "w", "shell")
    if (state, name) in STEPS:
        assert fold(snapshot, event).worker("w").state == STEPS[state, name]
    else:
        with pytest.raises(Conflict):
            fold(snapshot, event)
    assert snapshot.worker("w") == before
    assert before.state is state


@pytest.mark.parametrize(("status", "end"), list(product(SessionStatus, SessionStatus)))
def test_only_an_active_session_ends_and_only_once(status: SessionStatus, end: SessionStatus) -> None:
    fact = SessionEnd(status=end, reason="user_request")
    if status is SessionStatus.ACTIVE and end is not SessionStatus.ACTIVE:
        assert next_status(status, fact) is end
    else:
        with pytest.raises(Conflict, match=f"{status} cannot become {end}"):
            next_status(status, fact)


@pytest.mark.parametrize("status", SessionStatus)
def test_only_an_ended_session_can_be_reopened(status: SessionStatus) -> None:
    if status is SessionStatus.ACTIVE:
        with pytest.raises(Conflict, match="active cannot become active"):
            next_status(status, SessionReopened())
    else:
        assert next_status(status, SessionReopened()) is SessionStatus.ACTIVE


def test_a_session_cannot_end_with_an_unknown_status() -> None:
    with pytest.raises(Conflict):
        next_status(SessionStatus.ACTIVE, SessionEnd(status="vanished", reason="magic"))


def test_spawning_and_active_workers_are_alive() -> None:
    assert {WorkerState.SPAWNING, WorkerState.ACTIVE} == ALIVE


@pytest.mark.parametrize(
    ("state", "activity", "word"),
    [
        (None, Activity.UNKNOWN, "idle"),
        (WorkerState.SPAWNING, Activity.UNKNOWN, "starting"),
        (WorkerState.ACTIVE, Activity.UNKNOWN, "connected"),
        (WorkerState.ACTIVE, Activity.IDLE, "connected"),
        (WorkerState.ACTIVE, Activity.ACTIVE, "running"),
        (WorkerState.ACTIVE, Activity.ASKING, "running"),
        (WorkerState.EXITED, Activity.ACTIVE, "exited"),
        (WorkerState.TERMINATED, Activity.UNKNOWN, "exited"),
        (WorkerState.FAILED, Activity.UNKNOWN, "error"),
    ],
)
def test_the_agent_panel_has_six_states(state: WorkerState | None, activity: Activity, word: str) -> None:
    assert panel_status(state, activity) == word


@pytest.mark.parametrize(
    ("state", "word"),
    [
        (WorkerState.SPAWNING, "SPAWNING"),
        (WorkerState.ACTIVE, "ACTIVE"),
        (WorkerState.FAILED, "FAILED"),
        (WorkerState.EXITED, "TERMINATED"),
        (WorkerState.TERMINATED, "TERMINATED"),
    ],
)
def test_the_relay_has_four_states_of_an_agent(state: WorkerState, word: str) -> None:
    assert relay_agent_state(state) == word


@pytest.mark.parametrize("status", SessionStatus)
def test_the_relay_has_two_states_of_a_session(status: SessionStatus) -> None:
    assert relay_session_state(status) == ("ACTIVE" if status is SessionStatus.ACTIVE else "TERMINATED")


def test_the_states_page_is_generated_from_the_tables() -> None:
    script = ROOT / "scripts" / "states_page.py"
    printed = subprocess.run([sys.executable, script], capture_output=True, check=True).stdout
    assert printed.decode() == (ROOT / "docs" / "states.md").read_text()
