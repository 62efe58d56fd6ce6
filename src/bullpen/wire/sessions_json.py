"""`sessions.json` of agent-console (seed 004), old and new format, read as values."""

import re
from typing import Any

import msgspec
from msgspec import Struct

from ..domain.errors import Invalid
from .json import storable

NO_REPOSITORY = "default"  # what the old format calls a session without one
OLD_AGENT = "claude-code-builtin"  # the only one there was

# Agents of agent-console under the names they have here.
AGENTS = {OLD_AGENT: "claude"}

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class SavedWorker(Struct, frozen=True, kw_only=True, rename="camel"):
    id: str
    type: str
    name: str = ""
    agent_id: str | None = None

    @property
    def agent(self) -> str | None:
        return AGENTS.get(self.agent_id or "", self.agent_id)


class SavedSession(Struct, frozen=True, kw_only=True, rename="camel"):
    """A session as it was saved; pids in the file belong to another boot and are not looked at."""

    id: str
    type: str
    location_path: str
    created_at: str
    workers: list[SavedWorker]
    repository_id: str | None = None
    worktree_id: str | None = None


class OldSession(Struct, frozen=True, kw_only=True, rename="camel"):
    """The format before workers: one agent for each session."""

    id: str
    worktree_path: str
    created_at: str
    repository_id: str = NO_REPOSITORY

    def migrated(self) -> SavedSession:
        is_quick = self.repository_id == NO_REPOSITORY
        return SavedSession(
            id=self.id,
            type="quick" if is_quick else "worktree",
            location_path=self.worktree_path,
            created_at=self.created_at,
            workers=[SavedWorker(id=f"{self.id}-agent", type="agent", name="Claude", agent_id=OLD_AGENT)],
            repository_id=None if is_quick else self.repository_id,
            worktree_id=None if is_quick else self.worktree_path,
        )


def read_saved(entry: Any) -> SavedSession:
    """One entry of the file, whichever format it has; Invalid with what is wrong about it."""
    entry, _ = storable(entry)  # half a surrogate pair in an id has no place in a database
    try:
        if is_old(entry):
            return msgspec.convert(entry, OldSession).migrated()
        return msgspec.convert(entry, SavedSession)
    except msgspec.ValidationError as error:
        raise Invalid(str(error)) from None


def is_old(entry: Any) -> bool:
    return isinstance(entry, dict) and not ("type" in entry and "workers" in entry)


def is_uuid(text: str) -> bool:
    """Whether an id can be kept as it is."""
    return _UUID.fullmatch(text) is not None
