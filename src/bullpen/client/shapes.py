"""What the server says, as values. Fields a newer server adds are ignored, words it adds are kept."""

from datetime import UTC, datetime
from typing import Any, TypeAlias

from msgspec import Struct

from ..domain.conversation import TURN_FAILED

EPOCH = datetime.fromtimestamp(0, UTC)


class ServerShape(Struct, frozen=True, kw_only=True, rename="camel"):
    """camelCase on the wire."""


class Worker(ServerShape, frozen=True, kw_only=True):
    """One agent conversation, terminal, diff or document of a session."""

    id: str
    session_id: str
    type: str
    name: str
    role: str
    state: str
    workspace: str | None = None
    agent_id: str | None = None
    agent_kind: str | None = None
    file_path: str | None = None
    owner: str | None = None  # the agent whose command a terminal runs
    activity: str = "unknown"
    activity_why: str | None = None
    activity_since: datetime | None = None
    status: str | None = None
    run: int = 1
    pid: int | None = None
    foreground: str | None = None  # the program in the foreground of a terminal, if not its shell
    exit_code: int | None = None
    signal: str | None = None
    error: str | None = None
    created_at: datetime = EPOCH
    last_active_at: datetime | None = None

    @property
    def alive(self) -> bool:
        return self.state in ("spawning", "active")

    @property
    def turn_failure(self) -> str | None:
        """Why the last turn of an agent at rest failed; None when it did not."""
        why = self.activity_why or ""
        return why if self.alive and self.activity == "idle" and why.startswith(TURN_FAILED) else None

    @property
    def has_terminal(self) -> bool:
        """Whether one can attach to it."""
        return self.type == "terminal" or self.agent_kind == "pty"


class Port(ServerShape, frozen=True, kw_only=True):
    """What a program of a worker listens on."""

    port: int
    address: str
    worker_id: str
    role: str
    pid: int
    command: str


class PortList(ServerShape, frozen=True, kw_only=True):
    ports: list[Port]


class Session(ServerShape, frozen=True, kw_only=True):
    """A container of workers, tied to one directory."""

    id: str
    type: str
    title: str
    status: str
    end_reason: str | None = None
    metadata: dict[str, Any] | None = None
    live: bool = False
    repo_id: str | None = None
    worktree_id: str | None = None
    location_path: str = ""
    on_last_disconnect: str = "keep"
    created_at: datetime = EPOCH
    updated_at: datetime = EPOCH
    last_seq: int = 0
    workers: list[Worker] = []

    @property
    def active(self) -> bool:
        return self.status == "active"

    def worker(self, worker_id: str) -> Worker | None:
        return next((worker for worker in self.workers if worker.id == worker_id), None)


class SessionPage(ServerShape, frozen=True, kw_only=True):
    sessions: list[Session]
    total: int
    limit: int
    offset: int


class SessionList(ServerShape, frozen=True, kw_only=True):
    """All sessions as they are now: the first news, and again after every loss of the connection."""

    sessions: list[Session]


class SessionChanged(ServerShape, frozen=True, kw_only=True):
    """One session as it is now, new or changed."""

    session: Session


class SessionRemoved(ServerShape, frozen=True, kw_only=True):
    """A session was purged."""

    session_id: str


News: TypeAlias = SessionList | SessionChanged | SessionRemoved


class ImportedSession(ServerShape, frozen=True, kw_only=True):
    """A saved session that is here now; `notes` say what is not as it was."""

    id: str
    session_id: str
    title: str
    workers: int = 0
    notes: list[str] = []


class SkippedEntry(ServerShape, frozen=True, kw_only=True):
    id: str
    reason: str


class ImportResult(ServerShape, frozen=True, kw_only=True):
    taken: list[ImportedSession]
    left: list[SkippedEntry]


class Event(ServerShape, frozen=True, kw_only=True):
    """A numbered fact. Same (session, seq): same event, everywhere, for ever."""

    seq: int
    type: str
    timestamp: datetime
    data: Any = None
    worker_id: str | None = None
    role: str | None = None


class EventPage(ServerShape, frozen=True, kw_only=True):
    events: list[Event]
    head: int


class Repository(ServerShape, frozen=True, kw_only=True):
    id: str
    name: str
    path: str
    agent_id: str | None = None
    env: list[str] = []  # names only
    setup: str = ""
    cleanup: str = ""
    created_at: datetime = EPOCH
    queue: dict[str, Any] = {}  # how the queues of its sessions work; None: as everywhere


class Root(ServerShape, frozen=True, kw_only=True):
    """A directory in which sessions are allowed, and why: setting, scratch, repository or added."""

    path: str
    source: str
    added_at: datetime | None = None


class RootList(ServerShape, frozen=True, kw_only=True):
    """`fixed`: the setting workspace_root decides, and no root can be added or removed."""

    fixed: bool
    roots: list[Root]


class Worktree(ServerShape, frozen=True, kw_only=True):
    """One of a repository's directories; `problem` is what is wrong with it."""

    name: str
    path: str
    branch: str | None = None
    is_main: bool = False
    dirty: bool | None = None
    ahead: int | None = None
    behind: int | None = None
    problem: str | None = None


class TrashedWorktree(ServerShape, frozen=True, kw_only=True):
    """A worktree that was removed and can be restored."""

    id: str
    name: str
    path: str
    branch: str | None = None
    removed_at: datetime = EPOCH
    expires_at: datetime = EPOCH


class UnfinishedWorktree(ServerShape, frozen=True, kw_only=True):
    name: str
    progress: str


class WorktreeList(ServerShape, frozen=True, kw_only=True):
    worktrees: list[Worktree]
    trash: list[TrashedWorktree] = []
    making: list[UnfinishedWorktree] = []


class Health(ServerShape, frozen=True, kw_only=True):
    """`status` is ok, starting, full (the disk is), or degraded (without what `away` names)."""

    status: str
    version: str | None = None
    away: tuple[str, ...] = ()


class Setting(ServerShape, frozen=True, kw_only=True):
    """A setting of a server, and where it comes from: flag, environment, a file or default."""

    value: Any
    source: str


class Settings(ServerShape, frozen=True, kw_only=True):
    """What a server runs with."""

    log_level: str
    started_with: dict[str, Setting] = {}  # by name; empty from a server of an older version


class LoginCode(ServerShape, frozen=True, kw_only=True):
    """Opens the web UI once, for ten minutes."""

    code: str
    url: str


class WorkerList(ServerShape, frozen=True, kw_only=True):
    workers: list[Worker]


class RepositoryList(ServerShape, frozen=True, kw_only=True):
    repositories: list[Repository]


class Token(ServerShape, frozen=True, kw_only=True):
    """A key to the house; `kind` tells a browser that logged in (device) from a token."""

    id: str
    name: str
    scope: str
    kind: str = "token"
    created_at: datetime = EPOCH
    last_used_at: datetime | None = None
    expires_at: datetime | None = None


class NewToken(Token, frozen=True, kw_only=True):
    """A token with its text, which nobody can see again."""

    token: str


class Share(NewToken, frozen=True, kw_only=True):
    """A token that shows one session, and the link with it."""

    session_id: str
    url: str


class RebuildResult(ServerShape, frozen=True, kw_only=True):
    """How many recordings were written anew, and how many events they hold."""

    sessions: int
    events: int


class RotatedToken(ServerShape, frozen=True, kw_only=True):
    token: str


class TokenList(ServerShape, frozen=True, kw_only=True):
    tokens: list[Token]
