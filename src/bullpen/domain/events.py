"""Facts (what happened) and events (facts with a number and a time), as they are stored and sent.

Both are immutable data that never refers back to itself, so the garbage collector may ignore them
(`gc=False`). Stored data outlives this file: fields are only added, with a default.
"""

import re
from typing import Annotated, Any, ClassVar, Self

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from .grants import GrantKind
from .sandbox import SandboxLevel

FACTS: dict[str, type["Fact"]] = {}


class Fact(Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """The data of one event. `type` is its name on the wire, made from the class name."""

    type: ClassVar[str] = "fact"

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.type = re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()
        FACTS[cls.type] = cls

    def to_data(self) -> Any:
        """Return the `data` object of the event as it is stored and sent."""
        return msgspec.to_builtins(self)

    @classmethod
    def from_data(cls, data: Any) -> Self:
        """Return the fact in a decoded `data` object, or raise msgspec.ValidationError."""
        return msgspec.convert(data, cls)


# Values that are stored in a database column. A fact with a value out of range is read as Unknown.
Int64 = Annotated[int, Meta(ge=-(1 << 63), le=(1 << 63) - 1)]
Run = Annotated[int, Meta(ge=1, le=(1 << 31) - 1)]
SessionType = Annotated[str, Meta(pattern="^(worktree|quick)$")]
DisconnectPolicy = Annotated[str, Meta(pattern="^(keep|terminate)$")]
WindowSide = Annotated[int, Meta(ge=1, le=(1 << 16) - 1)]  # the limit of the kernel


class SessionStart(Fact, frozen=True, kw_only=True):
    """The session was created; always event 1."""

    session_type: SessionType
    location_path: str
    title: str
    repo_id: str | None = None
    worktree_id: str | None = None
    on_last_disconnect: DisconnectPolicy = "keep"
    founder: str | None = None  # id of the first agent; until it answers, its failure fails the session
    started_by: str | None = None  # token id of the delegate that started it
    sandbox: SandboxLevel | None = None  # the least level of its agents


class SessionImported(Fact, frozen=True, kw_only=True):
    """The session was imported from another program, which had this id and creation time for it."""

    original_id: str
    created_at: str


class SessionChanged(Fact, frozen=True, kw_only=True):
    """A user changed the session; None leaves a value as it was."""

    title: str | None = None
    on_last_disconnect: DisconnectPolicy | None = None


class SessionEnd(Fact, frozen=True, kw_only=True):
    """The session ended."""

    status: str
    reason: str
    detail: str | None = None


class SessionReopened(Fact, frozen=True, kw_only=True):
    """A user continues a session that had ended; its workers can be started again."""


class WorkerSpawning(Fact, frozen=True, kw_only=True):
    """A run of a worker begins. The first run creates the worker, later runs restart it."""

    worker_type: str
    name: str
    run: Run
    workspace: str
    agent_id: str | None = None
    agent_kind: str | None = None  # acp: JSON-RPC on pipes; pty: keystrokes in a terminal
    file_path: str | None = None
    url: str | UnsetType = UNSET  # of the page that a web worker shows
    cols: WindowSide = 80
    rows: WindowSide = 24
    automatic: bool = False  # restarted by Bullpen after a crash, not by a user
    sandbox: SandboxLevel | None = None  # the level of this run; None for runs without a process
    sandbox_asked: SandboxLevel | None = None  # the level that was requested for this worker


class WorkerCommand(Fact, frozen=True, kw_only=True):
    """The command a terminal runs in place of a shell; `owner` is the agent that ordered it.

    `like_agent` is the id of the agent definition whose environment the command gets. The environment itself
    is not stored because it may hold secrets.
    """

    argv: tuple[str, ...]
    env: dict[str, str] = {}
    like_agent: str | None = None
    owner: str | None = None
    output_limit: int | None = None  # bytes of output that the owner asked for


class WorkerReady(Fact, frozen=True, kw_only=True):
    """The worker's program runs."""

    pid: Int64 | None = None


class WorkerExited(Fact, frozen=True, kw_only=True):
    """The worker's program ended by itself."""

    exit_code: Int64 | None = None
    signal: str | None = None


class WorkerFailed(Fact, frozen=True, kw_only=True):
    """The worker could not be started, or its program was lost."""

    error: str
    exit_code: Int64 | None = None
    signal: str | None = None
    stderr: str | None = None
    again: bool = False  # Bullpen is about to restart it


class WorkerTerminated(Fact, frozen=True, kw_only=True):
    """A user or a rule ended the worker. It can be restarted until another worker takes its role."""

    reason: str


class WorkerActivity(Fact, frozen=True, kw_only=True, omit_defaults=True):
    """The agent's activity changed. `by_hand`: the work was typed into its terminal, not prompted."""

    activity: str
    why: str
    by_hand: bool = False


class SandboxRefusal(Fact, frozen=True, kw_only=True):
    """A program was refused a host, or a file outside its workspace.

    A grant of this kind and target allows it; a name that leads to this machine cannot be allowed.
    """

    kind: GrantKind
    target: str  # `name`, `name:port`, or an absolute path
    program: str
    can_be_allowed: bool = True


class SandboxRefusalSeen(Fact, frozen=True, kw_only=True):
    """A user took a refusal off the inbox; later ones of the same kind and target stay off it."""

    kind: GrantKind
    target: str


class Error(Fact, frozen=True, kw_only=True):
    """An error that a reader of the session's history should know about."""

    message: str
    detail: str | None = None


class Unknown(Fact, frozen=True, kw_only=True):
    """A fact from a newer version of Bullpen, stored unchanged."""

    name: str
    data: Any

    def to_data(self) -> Any:
        """Return the stored data, unchanged."""
        return self.data


class Draft(Struct, frozen=True, gc=False):
    """A fact that is about to be appended to the log, with the worker it concerns."""

    fact: Fact
    worker_id: str | None = None
    role: str | None = None
    at: int | None = None  # milliseconds since the epoch, if it happened before now; an import sets it


class Event(Struct, frozen=True, gc=False):
    """A fact with its number. The same (session, seq) is the same event on every client at every time."""

    seq: int
    timestamp: int  # milliseconds since the epoch; never goes back within a session
    fact: Fact
    worker_id: str | None = None
    role: str | None = None

    @property
    def type(self) -> str:
        return self.fact.name if isinstance(self.fact, Unknown) else self.fact.type


def read_fact(name: str, data: Any) -> Fact:
    """Return the fact of a stored event. An unknown name or an unexpected shape gives an Unknown fact."""
    known = FACTS.get(name)
    if known is None or known is Unknown:
        return Unknown(name=name, data=data)
    try:
        return known.from_data(data)
    except msgspec.ValidationError:
        return Unknown(name=name, data=data)
