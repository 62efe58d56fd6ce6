"""Facts, and the events they become once they have a number.

A fact is what happened. The log turns it into an event: numbered, dated, never changed. Both are data, which
never refers back to itself: they are no work for the garbage collector (`gc=False`).
Stored data outlives this file: fields are only added, with a default.
"""

import re
from typing import Annotated, Any, ClassVar, Self

import msgspec
from msgspec import Meta, Struct

FACTS: dict[str, type["Fact"]] = {}


class Fact(Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """The data of one event. `type` is its name on the wire, made from the class name."""

    type: ClassVar[str] = "fact"

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.type = re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()
        FACTS[cls.type] = cls

    def to_data(self) -> Any:
        """The `data` object as it is stored and sent."""
        return msgspec.to_builtins(self)

    @classmethod
    def from_data(cls, data: Any) -> Self:
        return msgspec.convert(data, cls)


# Numbers that have a column of the database: what does not fit makes the fact an Unknown one.
Int64 = Annotated[int, Meta(ge=-(1 << 63), le=(1 << 63) - 1)]
Run = Annotated[int, Meta(ge=1, le=(1 << 31) - 1)]
WindowSide = Annotated[int, Meta(ge=1, le=(1 << 16) - 1)]  # as much as a terminal can have


class SessionStart(Fact, frozen=True, kw_only=True):
    session_type: str
    location_path: str
    title: str
    repo_id: str | None = None
    worktree_id: str | None = None
    on_last_disconnect: str = "keep"
    founder: str | None = None  # the agent it is made with, whose failure to begin is its own
    started_by: str | None = None  # the delegate that started it, by the id of its token


class SessionImported(Fact, frozen=True, kw_only=True):
    """It was saved by another program, under this id and at this time, in that program's words."""

    original_id: str
    created_at: str


class SessionChanged(Fact, frozen=True, kw_only=True):
    """New values of what a person may edit; None leaves a value as it was."""

    title: str | None = None
    on_last_disconnect: str | None = None


class SessionEnd(Fact, frozen=True, kw_only=True):
    status: str
    reason: str
    detail: str | None = None


class WorkerSpawning(Fact, frozen=True, kw_only=True):
    """A run begins: the first one makes the worker, a later one starts it again."""

    worker_type: str
    name: str
    run: Run
    workspace: str
    agent_id: str | None = None
    agent_kind: str | None = None  # how one talks to it: acp, pty
    file_path: str | None = None
    cols: WindowSide = 80
    rows: WindowSide = 24
    automatic: bool = False  # nobody asked for it: its last run crashed


class WorkerCommand(Fact, frozen=True, kw_only=True):
    """What a terminal runs in place of a shell; `owner` is the agent that ordered it.

    `like_agent` is the definition whose environment it gets: by name, since that may hold keys.
    """

    argv: tuple[str, ...]
    env: dict[str, str] = {}
    like_agent: str | None = None
    owner: str | None = None
    output_limit: int | None = None  # bytes of its output the owner wants to see


class WorkerReady(Fact, frozen=True, kw_only=True):
    pid: Int64 | None = None


class WorkerExited(Fact, frozen=True, kw_only=True):
    exit_code: Int64 | None = None
    signal: str | None = None


class WorkerFailed(Fact, frozen=True, kw_only=True):
    error: str
    exit_code: Int64 | None = None
    signal: str | None = None
    stderr: str | None = None
    again: bool = False  # it is about to be started again, by itself


class WorkerTerminated(Fact, frozen=True, kw_only=True):
    reason: str


class WorkerActivity(Fact, frozen=True, kw_only=True, omit_defaults=True):
    """What an agent does now; by hand: somebody typed that into its terminal, it was not prompted."""

    activity: str
    why: str
    by_hand: bool = False


class Error(Fact, frozen=True, kw_only=True):
    """Something a reader of the time line should know went wrong."""

    message: str
    detail: str | None = None


class Unknown(Fact, frozen=True, kw_only=True):
    """A fact of a newer Bullpen, kept as it was said."""

    name: str
    data: Any

    def to_data(self) -> Any:
        return self.data


class Draft(Struct, frozen=True, gc=False):
    """A fact on its way into the log."""

    fact: Fact
    worker_id: str | None = None
    role: str | None = None


class Event(Struct, frozen=True, gc=False):
    """A fact with its number. Same (session, seq): same event, everywhere, for ever."""

    seq: int
    timestamp: int  # milliseconds since the epoch; never goes back within a session
    fact: Fact
    worker_id: str | None = None
    role: str | None = None

    @property
    def type(self) -> str:
        return self.fact.name if isinstance(self.fact, Unknown) else self.fact.type


def read_fact(name: str, data: Any) -> Fact:
    """The fact a stored event was made of; a name or a shape we do not know is kept, not refused."""
    known = FACTS.get(name)
    if known is None or known is Unknown:
        return Unknown(name=name, data=data)
    try:
        return known.from_data(data)
    except msgspec.ValidationError:
        return Unknown(name=name, data=data)
