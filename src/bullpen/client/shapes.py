"""What the server says, as values. Fields a newer server adds are ignored, words it adds are kept."""

from datetime import UTC, datetime
from typing import Any, TypeAlias

from msgspec import Struct

_EPOCH = datetime.fromtimestamp(0, UTC)


class Shape(Struct, frozen=True, kw_only=True, rename="camel"):
    """camelCase on the wire."""


class Worker(Shape, frozen=True, kw_only=True):
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
    activity: str = "unknown"
    activity_why: str | None = None
    activity_since: datetime | None = None
    status: str | None = None
    run: int = 1
    pid: int | None = None
    exit_code: int | None = None
    signal: str | None = None
    error: str | None = None
    created_at: datetime = _EPOCH
    last_active_at: datetime | None = None

    @property
    def alive(self) -> bool:
        return self.state in ("spawning", "active")

    @property
    def has_terminal(self) -> bool:
        """Whether one can attach to it."""
        return self.type == "terminal" or self.agent_kind == "pty"


class Session(Shape, frozen=True, kw_only=True):
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
    created_at: datetime = _EPOCH
    updated_at: datetime = _EPOCH
    last_seq: int = 0
    workers: list[Worker] = []

    @property
    def active(self) -> bool:
        return self.status == "active"

    def worker(self, worker_id: str) -> Worker | None:
        return next((worker for worker in self.workers if worker.id == worker_id), None)


class SessionPage(Shape, frozen=True, kw_only=True):
    sessions: list[Session]
    total: int
    limit: int
    offset: int


class SessionList(Shape, frozen=True, kw_only=True):
    """All sessions as they are now: the first news, and again after every loss of the connection."""

    sessions: list[Session]


class SessionChanged(Shape, frozen=True, kw_only=True):
    """One session as it is now, new or changed."""

    session: Session


class SessionRemoved(Shape, frozen=True, kw_only=True):
    """A session was purged."""

    session_id: str


News: TypeAlias = SessionList | SessionChanged | SessionRemoved


class Taken(Shape, frozen=True, kw_only=True):
    """A saved session that is here now; `notes` say what is not as it was."""

    id: str
    session_id: str
    title: str
    workers: int = 0
    notes: list[str] = []


class Left(Shape, frozen=True, kw_only=True):
    id: str
    reason: str


class Imported(Shape, frozen=True, kw_only=True):
    taken: list[Taken]
    left: list[Left]


class Event(Shape, frozen=True, kw_only=True):
    """A numbered fact. Same (session, seq): same event, everywhere, for ever."""

    seq: int
    type: str
    timestamp: datetime
    data: Any = None
    worker_id: str | None = None
    role: str | None = None


class EventPage(Shape, frozen=True, kw_only=True):
    events: list[Event]
    head: int


class Repository(Shape, frozen=True, kw_only=True):
    id: str
    name: str
    path: str
    agent_id: str | None = None
    env: list[str] = []  # names only
    setup: str = ""
    cleanup: str = ""
    created_at: datetime = _EPOCH
    queue: dict[str, Any] = {}  # how the queues of its sessions work; None: as everywhere


class Worktree(Shape, frozen=True, kw_only=True):
    """One of a repository's directories; `problem` is what is wrong with it."""

    name: str
    path: str
    branch: str | None = None
    is_main: bool = False
    dirty: bool | None = None
    ahead: int | None = None
    behind: int | None = None
    problem: str | None = None


class Trashed(Shape, frozen=True, kw_only=True):
    """A worktree that was removed and can be restored."""

    id: str
    name: str
    path: str
    branch: str | None = None
    removed_at: datetime = _EPOCH
    expires_at: datetime = _EPOCH


class Making(Shape, frozen=True, kw_only=True):
    name: str
    progress: str


class WorktreeList(Shape, frozen=True, kw_only=True):
    worktrees: list[Worktree]
    trash: list[Trashed] = []
    making: list[Making] = []


class Health(Shape, frozen=True, kw_only=True):
    """`status` is ok, starting, or full when the disk is."""

    status: str
    version: str | None = None


class LoginCode(Shape, frozen=True, kw_only=True):
    """Opens the web UI once, for ten minutes."""

    code: str
    url: str


class Workers(Shape, frozen=True, kw_only=True):
    workers: list[Worker]


class Repositories(Shape, frozen=True, kw_only=True):
    repositories: list[Repository]


class Token(Shape, frozen=True, kw_only=True):
    """A key to the house; `kind` tells a browser that logged in (device) from a token."""

    id: str
    name: str
    scope: str
    kind: str = "token"
    created_at: datetime = _EPOCH
    last_used_at: datetime | None = None
    expires_at: datetime | None = None


class NewToken(Token, frozen=True, kw_only=True):
    """A token with its text, which nobody can see again."""

    token: str


class Share(NewToken, frozen=True, kw_only=True):
    """A token that shows one session, and the link with it."""

    session_id: str
    url: str


class Rebuilt(Shape, frozen=True, kw_only=True):
    """How many recordings were written anew, and how many events they hold."""

    sessions: int
    events: int


class OwnersToken(Shape, frozen=True, kw_only=True):
    token: str


class TokenList(Shape, frozen=True, kw_only=True):
    tokens: list[Token]


class Agent(Shape, frozen=True, kw_only=True):
    """An agent that is defined; `missing` names the program it lacks."""

    id: str
    name: str
    kind: str = "acp"
    description: str = ""
    command: list[str] = []
    installed: bool = False
    missing: str | None = None
    install_hint: str = ""
    default: bool = False


class Agents(Shape, frozen=True, kw_only=True):
    agents: list[Agent]


class Prompted(Shape, frozen=True, kw_only=True):
    """What became of a prompt; `seq` is that of the event that tells of it."""

    prompt_id: str
    seq: int
    queued: bool


class Asked(Shape, frozen=True, kw_only=True):
    """What an agent waits for a person with."""

    id: str
    worker_id: str
    role: str
    created_at: datetime = _EPOCH


class Permission(Asked, frozen=True, kw_only=True):
    """What an agent asks leave for; `tool_call` and `options` are in its own words."""

    tool_call: dict[str, Any] = {}
    options: list[Any] = []


class Permissions(Shape, frozen=True, kw_only=True):
    permissions: list[Permission]


class Question(Asked, frozen=True, kw_only=True):
    """A form an agent wants filled in."""

    message: str
    form: Any = None
    url: str | None = None


class Questions(Shape, frozen=True, kw_only=True):
    questions: list[Question]


class AskedQuestion(Shape, frozen=True, kw_only=True):
    """A question a worker asked by itself, and the event that asks it."""

    id: str
    seq: int


class AskedState(Shape, frozen=True, kw_only=True):
    """What has become of it: `pending`, `accepted` with an answer, `declined` or `cancelled`."""

    id: str
    status: str
    answer: str | None = None
    by: str | None = None


class Message(Shape, frozen=True, kw_only=True):
    """Something a person, an agent or the system said; `content` has a `type`."""

    id: str
    seq: int
    role: str
    content: dict[str, Any]
    timestamp: datetime = _EPOCH


class Messages(Shape, frozen=True, kw_only=True):
    messages: list[Message]


class QueueItem(Struct, frozen=True, kw_only=True):
    """A message that waits for the agent."""

    id: str
    message: str
    queued_at: datetime = _EPOCH
    image_ids: list[str] = []
    client_id: str | None = None
    title: str | None = None
    scheduled_time: datetime | None = None
    state: str = "queued"

    @property
    def is_due(self) -> bool:
        """Whether it waits for the agent alone, and not for a time of its own."""
        return self.scheduled_time is None or self.scheduled_time <= datetime.now(UTC)


class Queue(Struct, frozen=True, kw_only=True):
    messages: list[QueueItem]
    count: int
    paused: bool = False


class InboxItem(Shape, frozen=True, kw_only=True):
    """One thing that waits for a person; `seq` is there for what happened and only has to be seen."""

    id: str
    kind: str
    session_id: str
    worker_id: str
    role: str
    text: str
    session_title: str = ""
    repo_id: str | None = None
    agent_id: str | None = None
    seq: int | None = None
    tool_call: dict[str, Any] | None = None
    options: list[Any] = []
    form: Any = None
    url: str | None = None
    created_at: datetime = _EPOCH


class Inbox(Shape, frozen=True, kw_only=True):
    items: list[InboxItem]


class Rule(Shape, frozen=True, kw_only=True):
    """Which permissions are answered automatically, and how."""

    name: str
    agent_id: str
    kind: str
    answer: str
    path: str | None = None
    command: str | None = None
    added: bool = True


class RuleList(Shape, frozen=True, kw_only=True):
    rules: list[Rule]


class Found(Shape, frozen=True, kw_only=True):
    """A moment of a session, with some of what was said then."""

    session_id: str
    seq: int
    type: str
    role: str
    snippet: str
    session_title: str = ""
    repo_id: str | None = None
    worker_id: str | None = None
    agent_id: str | None = None
    timestamp: datetime = _EPOCH
    run: int | None = None
    offset: int | None = None


class SearchResults(Shape, frozen=True, kw_only=True):
    results: list[Found]


class Cost(Shape, frozen=True, kw_only=True):
    amount: float
    currency: str


class Used(Shape, frozen=True, kw_only=True):
    """What some turns used, as far as their agents say."""

    turns: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_read_tokens: int = 0
    cached_write_tokens: int = 0
    thought_tokens: int = 0
    total_tokens: int = 0
    costs: list[Cost] = []


class UsageGroup(Used, frozen=True, kw_only=True):
    """The same of a day, a turn, a session, a repository or an agent: its id, or the date."""

    key: str | None = None
    title: str = ""
    session_id: str | None = None
    seq: int | None = None
    since: datetime = _EPOCH


class UsageReport(Shape, frozen=True, kw_only=True):
    by: str
    groups: list[UsageGroup]
    total: Used
