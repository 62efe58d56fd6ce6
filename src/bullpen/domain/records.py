"""Rows that change: what a person set up, as opposed to what happened."""

from msgspec import Struct

from .queue import QueueOverrides


class Repository(Struct, frozen=True, kw_only=True):
    """A git repository a person registered."""

    id: str
    path: str
    name: str
    created_at: int
    updated_at: int
    queue: QueueOverrides = QueueOverrides()  # what its sessions inherit


class RepositorySettings(Struct, frozen=True, kw_only=True):
    """What a person decided about a repository; `git_dir` is where we found it when it was registered."""

    git_dir: str | None = None
    agent_id: str | None = None
    env: dict[str, str] = {}
    setup: str = ""
    cleanup: str = ""


class Token(Struct, frozen=True, kw_only=True):
    """A key to the house. A device's key has a second secret; a program's has none.

    One with a session opens that session only, and only to look at it: a share.
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
    """What logs one browser in, once, for a while; its device gets this scope."""

    hash: str
    scope: str
    expires_at: int
