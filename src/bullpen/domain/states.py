"""The three axes of state as tables, and the words five vocabularies have for them.

An event that is not in a table is refused and nothing has changed. `docs/states.md` is
generated from here.
"""

from enum import StrEnum

from .errors import Conflict
from .events import (
    Fact,
    SessionEnd,
    WorkerExited,
    WorkerFailed,
    WorkerReady,
    WorkerSpawning,
    WorkerTerminated,
)


class SessionStatus(StrEnum):
    """Of a session."""

    ACTIVE = "active"
    COMPLETED = "completed"
    CANCELLED = "cancelled"
    ERROR = "error"


class WorkerState(StrEnum):
    """Of a worker's life."""

    SPAWNING = "spawning"
    ACTIVE = "active"
    EXITED = "exited"
    FAILED = "failed"
    TERMINATED = "terminated"


class Activity(StrEnum):
    """Of a living worker."""

    UNKNOWN = "unknown"
    ACTIVE = "active"
    IDLE = "idle"
    ASKING = "asking"

    @classmethod
    def _missing_(cls, value: object) -> "Activity":
        return cls.UNKNOWN  # a word of a newer Bullpen, or of nobody


ALIVE = frozenset({WorkerState.SPAWNING, WorkerState.ACTIVE})

SESSION: dict[SessionStatus, dict[type[Fact], frozenset[SessionStatus]]] = {
    SessionStatus.ACTIVE: {
        SessionEnd: frozenset({SessionStatus.COMPLETED, SessionStatus.CANCELLED, SessionStatus.ERROR})
    },
    SessionStatus.COMPLETED: {},
    SessionStatus.CANCELLED: {},
    SessionStatus.ERROR: {},
}

WORKER: dict[WorkerState, dict[type[Fact], WorkerState]] = {
    WorkerState.SPAWNING: {
        WorkerReady: WorkerState.ACTIVE,
        WorkerFailed: WorkerState.FAILED,
        WorkerTerminated: WorkerState.TERMINATED,
    },
    WorkerState.ACTIVE: {
        WorkerExited: WorkerState.EXITED,
        WorkerFailed: WorkerState.FAILED,
        WorkerTerminated: WorkerState.TERMINATED,
    },
    WorkerState.EXITED: {WorkerSpawning: WorkerState.SPAWNING, WorkerTerminated: WorkerState.TERMINATED},
    WorkerState.FAILED: {WorkerSpawning: WorkerState.SPAWNING, WorkerTerminated: WorkerState.TERMINATED},
    WorkerState.TERMINATED: {},
}


def next_state(state: WorkerState, fact: Fact) -> WorkerState:
    """The state a worker is in after the fact; a Conflict when the table has no such step."""
    try:
        return WORKER[state][type(fact)]
    except KeyError:
        raise Conflict(f"a worker that is {state} cannot take {fact.type}") from None


def next_status(status: SessionStatus, fact: SessionEnd) -> SessionStatus:
    """The status a session has after the fact; a Conflict when the table has no such step."""
    allowed = SESSION[status].get(type(fact), frozenset())
    if fact.status not in allowed:
        raise Conflict(f"a session that is {status} cannot become {fact.status}")
    return SessionStatus(fact.status)


def panel_word(state: WorkerState | None, activity: Activity) -> str:
    """The word of the agent panel (R3) for a worker, or for no worker at all."""
    match state:
        case None:
            return "idle"
        case WorkerState.SPAWNING:
            return "starting"
        case WorkerState.ACTIVE:
            return "running" if activity in (Activity.ACTIVE, Activity.ASKING) else "connected"
        case WorkerState.FAILED:
            return "error"
        case _:
            return "exited"


def relay_session_word(status: SessionStatus) -> str:
    """The word of the relay for a session (R61)."""
    return "ACTIVE" if status is SessionStatus.ACTIVE else "TERMINATED"


def relay_agent_word(state: WorkerState) -> str:
    """The word of the relay for an agent (R61)."""
    return "TERMINATED" if state is WorkerState.EXITED else state.name
