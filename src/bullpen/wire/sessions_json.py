"""Read `sessions.json` of the program agent-console, in its old and its new format."""

import re
from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec import Struct

from ..domain.errors import Invalid
from .json import storable

NO_REPOSITORY = "default"  # the old format's repository id of a session without a repository
OLD_AGENT = "claude-code-builtin"  # the only agent of the old format

AGENTS = {OLD_AGENT: "claude"}  # agents of agent-console: their id here
IN_TERMINAL = "-tui"  # ends the id of an agent in a terminal, if another one with its name speaks ACP

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class SavedWorker(Struct, frozen=True, kw_only=True, rename="camel"):
    """A worker in the new format of agent-console's `sessions.json`."""

    id: str
    type: str
    name: str = ""
    agent_id: str | None = None
    created_at: str = ""
    file_path: str | None = None
    url: str | None = None

    @property
    def agents(self) -> tuple[str, ...]:
        """The ids that the agent may have here, the likeliest first: agent-console runs it in a terminal."""
        agent_id = AGENTS.get(self.agent_id or "", self.agent_id)
        return (f"{agent_id}{IN_TERMINAL}", agent_id) if agent_id else ()


class SavedSession(Struct, frozen=True, kw_only=True, rename="camel"):
    """A session in the new format of `sessions.json`.

    Process ids in the file are ignored, because they are from another boot.
    """

    id: str
    type: str
    location_path: str
    created_at: str
    workers: list[SavedWorker]
    repository_id: str | None = None
    worktree_id: str | None = None


class OldSession(Struct, frozen=True, kw_only=True, rename="camel"):
    """A session in the old format of `sessions.json`, which has one agent for each session."""

    id: str
    worktree_path: str
    created_at: str
    repository_id: str = NO_REPOSITORY

    def migrated(self) -> SavedSession:
        """Return the session in the new format."""
        is_quick = self.repository_id == NO_REPOSITORY
        return SavedSession(
            id=self.id,
            type="quick" if is_quick else "worktree",
            location_path=self.worktree_path,
            created_at=self.created_at,
            workers=[
                SavedWorker(
                    id=f"{self.id}-agent",
                    type="agent",
                    name="Claude",
                    agent_id=OLD_AGENT,
                    created_at=self.created_at,
                )
            ],
            repository_id=None if is_quick else self.repository_id,
            worktree_id=None if is_quick else self.worktree_path,
        )


def read_saved(entry: Any) -> SavedSession:
    """Return a session of agent-console's `sessions.json` in either format, or raise Invalid."""
    entry, _ = storable(entry)  # a lone surrogate in an id cannot be stored
    try:
        if is_old(entry):
            return msgspec.convert(entry, OldSession).migrated()
        return msgspec.convert(entry, SavedSession)
    except msgspec.ValidationError as error:
        raise Invalid(str(error)) from None


def is_old(entry: Any) -> bool:
    """Return whether an entry of `sessions.json` has the old format."""
    return isinstance(entry, dict) and not ("type" in entry and "workers" in entry)


def read_time(text: str, latest: int) -> int:
    """Return a saved time in milliseconds since the epoch; `latest` if it is unreadable or later."""
    try:
        time = datetime.fromisoformat(text)
        milliseconds = round((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp() * 1000)
    except (ValueError, OverflowError):
        return latest
    return min(max(milliseconds, 0), latest)


def is_uuid(text: str) -> bool:
    """Return whether a saved id is a UUID and can be kept."""
    return _UUID.fullmatch(text) is not None
