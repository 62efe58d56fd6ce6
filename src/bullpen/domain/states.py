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


class Status(StrEnum):
    """Of a session."""

    ACTIVE = "active"
    COMPLETED = "completed"
    CANCELLED = "cancelled"
    ERROR = "error"


class State(StrEnum):
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


ALIVE = frozenset({State.SPAWNING, State.ACTIVE})

SESSION: dict[Status, dict[type[Fact], frozenset[Status]]] = {
    Status.ACTIVE: {SessionEnd: frozenset({Status.COMPLETED, Status.CANCELLED, Status.ERROR})},
    Status.COMPLETED: {},
    Status.CANCELLED: {},
    Status.ERROR: {},
}

WORKER: dict[State, dict[type[Fact], State]] = {
    State.SPAWNING: {
        WorkerReady: State.ACTIVE,
        WorkerFailed: State.FAILED,
        WorkerTerminated: State.TERMINATED,
    },
    State.ACTIVE: {
        WorkerExited: State.EXITED,
        WorkerFailed: State.FAILED,
        WorkerTerminated: State.TERMINATED,
    },
    State.EXITED: {WorkerSpawning: State.SPAWNING, WorkerTerminated: State.TERMINATED},
    State.FAILED: {WorkerSpawning: State.SPAWNING, WorkerTerminated: State.TERMINATED},
    State.TERMINATED: {},
}


def next_state(state: State, fact: Fact) -> State:
    """The state a worker is in after the fact; a Conflict when the table has no such step."""
    try:
        return WORKER[state][type(fact)]
    except KeyError:
        raise Conflict(f"a worker that is {state} cannot take {fact.type}") from None


def next_status(status: Status, fact: SessionEnd) -> Status:
    """The status a session has after the fact; a Conflict when the table has no such step."""
    allowed = SESSION[status].get(type(fact), frozenset())
    if fact.status not in allowed:
        raise Conflict(f"a session that is {status} cannot become {fact.status}")
    return Status(fact.status)


def panel_word(state: State | None, activity: Activity) -> str:
    """The word of the agent panel (R3) for a worker, or for no worker at all."""
    match state:
        case None:
            return "idle"
        case State.SPAWNING:
            return "starting"
        case State.ACTIVE:
            return "running" if activity in (Activity.ACTIVE, Activity.ASKING) else "connected"
        case State.FAILED:
            return "error"
        case _:
            return "exited"


def relay_session_word(status: Status) -> str:
    """The word of the relay for a session (R61)."""
    return "ACTIVE" if status is Status.ACTIVE else "TERMINATED"


def relay_agent_word(state: State) -> str:
    """The word of the relay for an agent (R61)."""
    return "TERMINATED" if state is State.EXITED else state.name
