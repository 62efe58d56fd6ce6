"""Define the answers of the server as types; fields that a newer server adds are ignored."""

from datetime import UTC, datetime
from typing import Any, TypeAlias

from msgspec import Struct

from ..domain.conversation import TURN_FAILED

EPOCH = datetime.fromtimestamp(0, UTC)


class ServerShape(Struct, frozen=True, kw_only=True, rename="camel"):
    """The base of the server's answers. Field names are in camelCase in JSON."""


class Attention(ServerShape, frozen=True, kw_only=True):
    """What a session needs from the user (asking, error, done, working or idle), why and since when."""

    need: str
    why: str
    since: datetime


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
    url: str | None = None
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
    sandbox: str | None = None  # the level of this run
    created_at: datetime = EPOCH
    last_active_at: datetime | None = None

    @property
    def alive(self) -> bool:
        """Whether the worker is starting or running."""
        return self.state in ("spawning", "active")

    @property
    def turn_failure(self) -> str | None:
        """Why the last turn of an idle agent failed; None if it did not fail."""
        reason = self.activity_why or ""
        failed = self.alive and self.activity == "idle" and reason.startswith(TURN_FAILED)
        return reason if failed else None

    @property
    def has_terminal(self) -> bool:
        """Whether a client can attach to the worker's terminal."""
        return self.type == "terminal" or self.agent_kind == "pty"


class Port(ServerShape, frozen=True, kw_only=True):
    """A TCP port on which a program of a worker listens."""

    port: int
    address: str
    worker_id: str
    role: str
    pid: int
    command: str


class PortList(ServerShape, frozen=True, kw_only=True):
    """The ports of a session."""

    ports: list[Port]


class Session(ServerShape, frozen=True, kw_only=True):
    """A container of workers, tied to one directory."""

    id: str
    type: str
    title: str
    status: str
    agent_status: str = "idle"
    end_reason: str | None = None
    metadata: dict[str, Any] | None = None
    live: bool = False
    repo_id: str | None = None
    worktree_id: str | None = None
    location_path: str = ""
    on_last_disconnect: str = "keep"
    sandbox: str | None = None  # the least level of its agents
    created_at: datetime = EPOCH
    updated_at: datetime = EPOCH
    last_seq: int = 0
    attention: Attention = Attention(need="idle", why="", since=EPOCH)
    workers: list[Worker] = []

    @property
    def active(self) -> bool:
        """Whether the session has not ended."""
        return self.status == "active"

    def worker(self, worker_id: str) -> Worker | None:
        """Return the worker with an id; None if the session has no such worker."""
        return next((worker for worker in self.workers if worker.id == worker_id), None)


class SessionPage(ServerShape, frozen=True, kw_only=True):
    """Up to `limit` of `total` sessions, from `offset` on."""

    sessions: list[Session]
    total: int
    limit: int
    offset: int


class SessionList(ServerShape, frozen=True, kw_only=True):
    """All sessions; the first item of the dashboard, and the first after every reconnection."""

    sessions: list[Session]


class SessionChanged(ServerShape, frozen=True, kw_only=True):
    """A session that is new or has changed."""

    session: Session


class SessionRemoved(ServerShape, frozen=True, kw_only=True):
    """A session was purged."""

    session_id: str


News: TypeAlias = SessionList | SessionChanged | SessionRemoved


class ImportedSession(ServerShape, frozen=True, kw_only=True):
    """A session that is imported, by this import or `before`; `notes` say what could not be restored."""

    id: str
    session_id: str
    title: str
    workers: int = 0
    before: bool = False
    notes: list[str] = []


class SkippedEntry(ServerShape, frozen=True, kw_only=True):
    """An entry of an imported file that was skipped, the reason, and the root that would allow it."""

    id: str
    reason: str
    allow_root: str | None = None


class ImportResult(ServerShape, frozen=True, kw_only=True):
    """The sessions that an import created, and the entries it skipped (`left`)."""

    taken: list[ImportedSession]
    left: list[SkippedEntry]


class SavedSessions(ServerShape, frozen=True, kw_only=True):
    """The entries of a `sessions.json` of agent-console; `path` is None without one."""

    path: str | None
    sessions: list[Any]


class Event(ServerShape, frozen=True, kw_only=True):
    """An event of a session. The event with a given session and `seq` never changes."""

    seq: int
    type: str
    timestamp: datetime
    data: Any = None
    worker_id: str | None = None
    role: str | None = None


class EventPage(ServerShape, frozen=True, kw_only=True):
    """Some events of a session; `head` is the seq of its newest event."""

    events: list[Event]
    head: int


class Repository(ServerShape, frozen=True, kw_only=True):
    """A registered git repository and its settings."""

    id: str
    name: str
    path: str
    agent_id: str | None = None
    env: list[str] = []  # names only
    setup: str = ""
    cleanup: str = ""
    created_at: datetime = EPOCH
    queue: dict[str, Any] = {}  # settings of its sessions' queues; None: the default of the server


class Root(ServerShape, frozen=True, kw_only=True):
    """A directory in which sessions are allowed, and why: setting, scratch, repository or added."""

    path: str
    source: str
    added_at: datetime | None = None


class RootList(ServerShape, frozen=True, kw_only=True):
    """All workspace roots. `fixed`: the setting workspace_root forbids to add or remove one."""

    fixed: bool
    roots: list[Root]


class Worktree(ServerShape, frozen=True, kw_only=True):
    """A git worktree of a repository; `problem` says why it cannot be used, if so."""

    name: str
    path: str
    branch: str | None = None
    is_main: bool = False
    dirty: bool | None = None
    changes: tuple[str, ...] = ()
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
    """A worktree that is being created, with the last progress line of git."""

    name: str
    progress: str


class WorktreeList(ServerShape, frozen=True, kw_only=True):
    """The worktrees of a repository: existing, removed (`trash`) and being created (`making`)."""

    worktrees: list[Worktree]
    trash: list[TrashedWorktree] = []
    making: list[UnfinishedWorktree] = []


class Health(ServerShape, frozen=True, kw_only=True):
    """Whether the server is ready.

    `status` is ok, starting, full (no disk space) or degraded (the services in `away` do not answer).
    """

    status: str
    version: str | None = None
    away: tuple[str, ...] = ()


class Setting(ServerShape, frozen=True, kw_only=True):
    """A setting of a server, and where it comes from: flag, environment, a file or default."""

    value: Any
    source: str


class Settings(ServerShape, frozen=True, kw_only=True):
    """The settings that a server uses."""

    log_level: str
    started_with: dict[str, Setting] = {}  # by name; empty from a server of an older version


class LoginCode(ServerShape, frozen=True, kw_only=True):
    """A code and a link that log in one browser, once, within ten minutes."""

    code: str
    url: str


class WorkerList(ServerShape, frozen=True, kw_only=True):
    """The workers of a session."""

    workers: list[Worker]


class RepositoryList(ServerShape, frozen=True, kw_only=True):
    """All registered repositories."""

    repositories: list[Repository]


class Token(ServerShape, frozen=True, kw_only=True):
    """A credential of the server without its secret: a `token`, or a logged-in browser (kind `device`)."""

    id: str
    name: str
    scope: str
    kind: str = "token"
    created_at: datetime = EPOCH
    last_used_at: datetime | None = None
    expires_at: datetime | None = None


class NewToken(Token, frozen=True, kw_only=True):
    """A token that was just created, with its secret text, which the server never shows again."""

    token: str


class Share(NewToken, frozen=True, kw_only=True):
    """A token that shows one session read-only, and the link that contains it."""

    session_id: str
    url: str


class RebuildResult(ServerShape, frozen=True, kw_only=True):
    """How many recordings were written again, and how many events they contain."""

    sessions: int
    events: int


class RotatedToken(ServerShape, frozen=True, kw_only=True):
    """The new text of the owner's token."""

    token: str


class TokenList(ServerShape, frozen=True, kw_only=True):
    """All tokens and logged-in browsers."""

    tokens: list[Token]


class GrantedAccess(ServerShape, frozen=True, kw_only=True):
    """A host that sealed runs may reach, or a path that sandboxed runs may read or write."""

    id: str
    kind: str
    target: str
    repo_id: str | None = None
    added_at: datetime = EPOCH


class GrantedAccessList(ServerShape, frozen=True, kw_only=True):
    """What users have allowed to sandboxed runs."""

    grants: list[GrantedAccess]


class SandboxLimit(ServerShape, frozen=True, kw_only=True):
    """What all sandboxed runs of a session may use together, 0 without a limit, and what enforces it."""

    name: str
    value: int
    enforced_by: str = ""


class RunSandboxAccess(ServerShape, frozen=True, kw_only=True):
    """What a run may read, write and reach; everything that is not listed is readable."""

    level: str
    writable: list[str] = []
    protected: list[str] = []
    readable: list[str] = []
    hidden: list[str] = []
    has_network: bool = True
    hosts: list[str] = []


class MachineSandbox(ServerShape, frozen=True, kw_only=True):
    """What runs the sandbox on the machine of the server, and the levels without a choice."""

    mechanism: str
    levels: list[str]
    agents: str
    terminals: str
    summary: str = ""
    problem: str = ""
    advice: str = ""
    gaps: list[str] = []
    limits: list[SandboxLimit] = []
