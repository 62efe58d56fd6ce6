"""The state machines of sessions and workers as tables, and the names of states in the other vocabularies.

An event that is not in a table is refused, and nothing changes. `docs/states.md` is generated from here.
"""

from enum import StrEnum

from .errors import Conflict
from .events import (
    Fact,
    SessionEnd,
    SessionReopened,
    WorkerExited,
    WorkerFailed,
    WorkerReady,
    WorkerSpawning,
    WorkerTerminated,
)


class SessionStatus(StrEnum):
    """Whether a session is active, or how it ended."""

    ACTIVE = "active"
    COMPLETED = "completed"
    CANCELLED = "cancelled"
    ERROR = "error"


class WorkerState(StrEnum):
    """The state of a worker's process."""

    SPAWNING = "spawning"
    ACTIVE = "active"
    EXITED = "exited"
    FAILED = "failed"
    TERMINATED = "terminated"


class Activity(StrEnum):
    """What a living worker is doing."""

    UNKNOWN = "unknown"
    ACTIVE = "active"
    IDLE = "idle"
    ASKING = "asking"

    @classmethod
    def _missing_(cls, value: object) -> "Activity":
        """Return UNKNOWN for an activity that a newer version stored."""
        return cls.UNKNOWN  # a value of a newer version


ALIVE = frozenset({WorkerState.SPAWNING, WorkerState.ACTIVE})

SESSION: dict[SessionStatus, dict[type[Fact], frozenset[SessionStatus]]] = {
    SessionStatus.ACTIVE: {
        SessionEnd: frozenset({SessionStatus.COMPLETED, SessionStatus.CANCELLED, SessionStatus.ERROR})
    },
    SessionStatus.COMPLETED: {SessionReopened: frozenset({SessionStatus.ACTIVE})},
    SessionStatus.CANCELLED: {SessionReopened: frozenset({SessionStatus.ACTIVE})},
    SessionStatus.ERROR: {SessionReopened: frozenset({SessionStatus.ACTIVE})},
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
    WorkerState.TERMINATED: {WorkerSpawning: WorkerState.SPAWNING},
}


def next_state(state: WorkerState, fact: Fact) -> WorkerState:
    """Return the state of a worker after the fact; raise Conflict if the table has no such transition."""
    try:
        return WORKER[state][type(fact)]
    except KeyError:
        raise Conflict(f"a worker that is {state} cannot take {fact.type}") from None


def next_status(status: SessionStatus, fact: SessionEnd | SessionReopened) -> SessionStatus:
    """Return the status of a session after the fact; raise Conflict if the table has no such step."""
    wanted = fact.status if isinstance(fact, SessionEnd) else SessionStatus.ACTIVE
    if wanted not in SESSION[status].get(type(fact), frozenset()):
        raise Conflict(f"a session that is {status} cannot become {wanted}")
    return SessionStatus(wanted)


def panel_status(state: WorkerState | None, activity: Activity) -> str:
    """Return the status that the agent panel shows for a worker, or for no worker (state None)."""
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


def relay_session_state(status: SessionStatus) -> str:
    """Return the relay's name for the state of a session."""
    return "ACTIVE" if status is SessionStatus.ACTIVE else "TERMINATED"


def relay_agent_state(state: WorkerState) -> str:
    """Return the relay's name for the state of an agent."""
    return "TERMINATED" if state is WorkerState.EXITED else state.name
