"""What may be decided about a repository: its default agent, its environment, its commands."""

import re
from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from .errors import Invalid
from .records import RepositorySettings

MOST_VARIABLES = 100
LONGEST_VALUE = 32 << 10
LONGEST_COMMAND = 10_000

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")


def edited(settings: RepositorySettings, edit: Mapping[str, Any]) -> RepositorySettings:
    """The settings after an edit; a variable set to None goes, and so does an empty agent."""
    changes: dict[str, Any] = {}
    for name in ("setup", "cleanup"):
        if name in edit:
            changes[name] = _command(name, edit[name])
    if "agent_id" in edit:
        changes["agent_id"] = edit["agent_id"] or None
    if edit.get("env"):
        changes["env"] = _environment(settings.env, edit["env"])
    return replace(settings, **changes)


def _command(name: str, text: str) -> str:
    if "\0" in text or len(text) > LONGEST_COMMAND:
        raise Invalid(f"the {name} command has at most {LONGEST_COMMAND} characters and no NUL")
    return text.strip()


def _environment(now: Mapping[str, str], edit: Mapping[str, str | None]) -> dict[str, str]:
    for name, value in edit.items():
        if not _NAME.fullmatch(name) or name.startswith("BULLPEN_"):
            raise Invalid(f"{name!r} cannot be the name of a variable here")
        if value is not None and ("\0" in value or len(value) > LONGEST_VALUE):
            raise Invalid(f"the value of {name} is too long or has a NUL")
    merged = {**now, **edit}
    kept = {name: value for name, value in merged.items() if value is not None}
    if len(kept) > MOST_VARIABLES:
        raise Invalid(f"a repository has at most {MOST_VARIABLES} variables")
    return kept
