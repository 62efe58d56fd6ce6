"""JSON shapes of requests and answers, from which the OpenAPI document is made."""

from typing import Annotated, Any, Literal

from pydantic import AliasChoices, BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from ...domain.sandbox import SandboxLevel


class Shape(BaseModel):
    """Base of all shapes: camelCase in JSON, unknown fields are ignored."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="ignore")


class SessionWorktreeShape(Shape):
    mode: Literal["new", "existing", "either", "directory"] = "new"
    branch: str | None = None
    base: str | None = None
    name: str | None = None
    path: str | None = None
    prompt: str | None = None


class NewSessionShape(Shape):
    type: Literal["worktree", "quick"] | None = None
    repo_id: Annotated[
        str | None,
        Field(validation_alias=AliasChoices("repoId", "repositoryId"), serialization_alias="repoId"),
    ] = None
    worktree_id: str | None = None
    branch: str | None = None
    worktree: SessionWorktreeShape | None = None
    location_path: str | None = None
    agent_id: str | None = None
    role: str | None = None
    title: str | None = None
    on_last_disconnect: Literal["keep", "terminate"] = "keep"
    continue_conversation: bool = False
    sandbox: SandboxLevel | None = None


class SessionEditShape(Shape):
    title: str | None = None
    on_last_disconnect: Literal["keep", "terminate"] | None = None


class NewWorkerShape(Shape):
    type: Literal["agent", "terminal", "diff", "markdown", "web"]
    name: str | None = None
    role: str | None = None
    agent_id: str | None = None
    workspace: str | None = None
    file_path: str | None = None
    url: str | None = None
    command: list[str] = []
    cols: Annotated[int, Field(ge=1, le=1000)] = 80
    rows: Annotated[int, Field(ge=1, le=1000)] = 24
    sandbox: SandboxLevel | None = None


class WorkerShape(Shape):
    id: str
    session_id: str
    type: str
    name: str
    role: str
    agent_id: str | None
    agent_kind: Literal["acp", "pty"] | None
    workspace: str
    file_path: str | None
    url: str | None
    owner: str | None
    state: Literal["spawning", "active", "exited", "failed", "terminated"]
    activity: Literal["unknown", "active", "idle", "asking"]
    activity_why: str
    activity_since: str
    status: Literal["idle", "starting", "connected", "running", "exited", "error"]
    run: int
    pid: int | None
    foreground: str | None = None
    exit_code: int | None
    signal: str | None
    error: str | None
    sandbox: SandboxLevel | None
    created_at: str
    last_active_at: str


class WorkersShape(Shape):
    workers: list[WorkerShape]


class AttentionShape(Shape):
    """What a session needs from the user, why and since when; the most urgent need first."""

    need: Literal["asking", "error", "done", "working", "idle"]
    why: str
    since: str


class SessionShape(Shape):
    id: str
    type: Literal["worktree", "quick"]
    title: str
    status: Literal["active", "completed", "cancelled", "error"]
    agent_status: Literal["idle", "starting", "connected", "running", "exited", "error"]
    end_reason: str | None
    metadata: dict[str, Any]
    live: bool
    repo_id: str | None
    worktree_id: str | None
    location_path: str
    on_last_disconnect: Literal["keep", "terminate"]
    started_by: str | None
    sandbox: SandboxLevel | None
    created_at: str
    updated_at: str
    last_seq: int
    attention: AttentionShape
    workers: list[WorkerShape]


class SessionsShape(Shape):
    sessions: list[SessionShape]
    total: int
    limit: int
    offset: int


class ImportShape(Shape):
    """The entries of a `sessions.json`, in its old or new format."""

    sessions: list[Any]


class SavedSessionsShape(Shape):
    """The `sessions.json` of agent-console; `path` is null without one."""

    path: str | None
    sessions: list[Any]


class ImportedSessionShape(Shape):
    """An entry that is imported, by this request or `before`."""

    id: str
    session_id: str
    title: str
    workers: int
    before: bool
    notes: list[str]


class SkippedEntryShape(Shape):
    """An entry that was skipped, with the reason, and the workspace root that would allow it."""

    id: str
    reason: str
    allow_root: str | None = None


class ImportedShape(Shape):
    taken: list[ImportedSessionShape]
    left: list[SkippedEntryShape]


class QueueOverridesShape(BaseModel):
    """Queue settings of a repository; null means the setting of the server."""

    enabled: bool | None = None
    delay_seconds: float | None = None
    max_size: int | None = None
    auto_generate_titles: bool | None = None


class RepositoryShape(Shape):
    id: str
    path: str
    name: str
    agent_id: str | None
    env: list[str]
    setup: str
    cleanup: str
    sandbox: SandboxLevel | None
    created_at: str
    updated_at: str
    queue: QueueOverridesShape


class RepositoriesShape(Shape):
    repositories: list[RepositoryShape]


class BranchesShape(Shape):
    branches: list[str]


class NewRepositoryShape(Shape):
    path: str
    name: str | None = None


class RepositoryEditShape(Shape):
    name: str | None = None
    queue: QueueOverridesShape | None = None
    agent_id: str | None = None
    env: dict[str, str | None] | None = None
    setup: str | None = None
    cleanup: str | None = None
    sandbox: SandboxLevel | Literal[""] | None = None


class WorktreeShape(Shape):
    name: str
    path: str
    branch: str | None
    is_main: bool
    dirty: bool | None
    changes: list[str]
    ahead: int | None
    behind: int | None
    problem: str | None


class TrashedWorktreeShape(Shape):
    id: str
    name: str
    path: str
    branch: str | None
    removed_at: str
    expires_at: str


class UnfinishedWorktreeShape(Shape):
    """A worktree that is being created."""

    name: str
    progress: str


class WorktreesShape(Shape):
    worktrees: list[WorktreeShape]
    trash: list[TrashedWorktreeShape]
    making: list[UnfinishedWorktreeShape]


class NewWorktreeShape(Shape):
    branch: str | None = None
    base: str | None = None
    name: str | None = None
    existing: bool = False
    prompt: str | None = None


class RestoreShape(Shape):
    id: str | None = None


class MessageShape(Shape):
    id: str
    session_id: str
    seq: int
    role: Literal["user", "agent", "system"]
    content: dict[str, Any]
    timestamp: str
    updated_at: str


class MessagesShape(Shape):
    messages: list[MessageShape]


class SessionDetailShape(SessionShape):
    repo: RepositoryShape | None
    worktree: WorktreeShape | None
    messages: list[MessageShape]


class EventShape(Shape):
    seq: int
    type: str
    worker_id: str | None
    role: str | None
    timestamp: str
    data: dict[str, Any]


class EventsShape(Shape):
    events: list[EventShape]
    head: int


class HealthShape(Shape):
    status: Literal["ok", "starting", "full", "degraded"]
    version: str
    away: list[Literal["database"]] = []


class LoginShape(Shape):
    code: str
    device: str = ""


class LoggedInShape(Shape):
    secret: str
    name: str
    scope: str


class NewLoginCodeShape(Shape):
    scope: Literal["view", "operate", "admin"] = "admin"


class LoginCodeShape(Shape):
    code: str
    url: str


class NewTokenShape(Shape):
    name: str
    scope: Literal["delegate", "view", "operate", "admin"] = "operate"
    expires_in: Annotated[int | None, Field(gt=0, le=100 * 366 * 86_400, description="seconds")] = None


class TokenShape(Shape):
    id: str
    name: str
    scope: str
    kind: Literal["token", "device", "share"]
    session_id: str | None
    created_at: str
    last_used_at: str | None
    expires_at: str | None


class NewTokenAnswerShape(TokenShape):
    token: str


class TokensShape(Shape):
    tokens: list[TokenShape]
    current: str | None


class RotatedTokenShape(Shape):
    token: str


class LogLevelShape(Shape):
    log_level: Literal["debug", "info", "warning", "error"]


class SettingShape(Shape):
    value: Any
    source: str


class SettingsShape(LogLevelShape):
    started_with: dict[str, SettingShape]


class SettingsEditShape(Shape):
    log_level: Literal["debug", "info", "warning", "error"] | None = None


class ShareShape(Shape):
    expires_in: Annotated[int, Field(gt=0, le=366 * 86_400, description="seconds")] = 7 * 86_400


class ShareAnswerShape(TokenShape):
    token: str
    url: str


class RebuildShape(Shape):
    session_id: str | None = None


class RebuildResultShape(Shape):
    sessions: int
    events: int


class MarkerShape(Shape):
    seq: int
    time: int
    kind: Literal["prompt", "tool", "permission", "question", "error"]
    label: str
    worker_id: str | None


class TerminalTimelineShape(Shape):
    worker_id: str
    run: int
    start: int
    end: int
    points: list[tuple[int, int]]
    sizes: list[tuple[int, int, int]]


class TerminalPlaceShape(Shape):
    worker_id: str
    run: int
    offset: int


class MomentShape(Shape):
    seq: int
    terminals: list[TerminalPlaceShape]


class TimelineShape(Shape):
    """Times are milliseconds since the epoch."""

    begins: int
    ends: int
    head: int
    markers: list[MarkerShape]
    truncated: bool
    terminals: list[TerminalTimelineShape]
    moment: MomentShape | None
