"""Records: rows of the database that users create and change, as opposed to events."""

from msgspec import Struct

from .queue import QueueOverrides
from .sandbox import SandboxLevel


class Repository(Struct, frozen=True, kw_only=True):
    """A git repository that a user registered."""

    id: str
    path: str
    name: str
    created_at: int
    updated_at: int
    queue: QueueOverrides = QueueOverrides()  # inherited by the queues of its sessions


class RepositorySettings(Struct, frozen=True, kw_only=True):
    """A user's settings for a repository. `git_dir` is the git directory at registration."""

    git_dir: str | None = None
    agent_id: str | None = None
    env: dict[str, str] = {}
    setup: str = ""
    cleanup: str = ""
    sandbox: SandboxLevel | None = None  # the least level of its agents


class Token(Struct, frozen=True, kw_only=True):
    """A bearer token. A browser's token has a second secret, a program's has none.

    A token with a session id is a share link: it can read that session and nothing else.
    """

    id: str
    name: str
    hash: str
    scope: str
    created_at: int
    last_used_at: int | None = None
    expires_at: int | None = None
    secret_hash: str | None = None
    session_id: str | None = None


class LoginCode(Struct, frozen=True, kw_only=True):
    """A code with which one browser can log in once before it expires; its token gets this scope."""

    hash: str
    scope: str
    expires_at: int
