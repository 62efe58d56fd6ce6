"""What the server says, as values. Fields a newer server adds are ignored, words it adds are kept."""

from datetime import UTC, datetime
from typing import Any

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
    created_at: datetime = _EPOCH


class Health(Shape, frozen=True, kw_only=True):
    status: str = "ok"
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


class OwnersToken(Shape, frozen=True, kw_only=True):
    token: str


class TokenList(Shape, frozen=True, kw_only=True):
    tokens: list[Token]
