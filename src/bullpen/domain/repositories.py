"""Check and apply edits of a repository's settings: agent, environment, setup and cleanup commands."""

import re
from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from .errors import Invalid
from .records import RepositorySettings

MAX_VARIABLES = 100
MAX_VALUE_LENGTH = 32 << 10
MAX_COMMAND_LENGTH = 10_000

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")


def apply_edit(settings: RepositorySettings, edit: Mapping[str, Any]) -> RepositorySettings:
    """Return the settings after an edit. A variable set to None, an empty agent and level are removed."""
    changes: dict[str, Any] = {}
    for name in ("setup", "cleanup"):
        if name in edit:
            changes[name] = _checked_command(name, edit[name])
    if "agent_id" in edit:
        changes["agent_id"] = edit["agent_id"] or None
    if "sandbox" in edit:
        changes["sandbox"] = edit["sandbox"] or None
    if edit.get("env"):
        changes["env"] = _edited_environment(settings.env, edit["env"])
    return replace(settings, **changes)


def _checked_command(name: str, text: str) -> str:
    """Return the stripped command, or raise Invalid if it is too long or has a NUL."""
    if "\0" in text or len(text) > MAX_COMMAND_LENGTH:
        raise Invalid(f"the {name} command has at most {MAX_COMMAND_LENGTH} characters and no NUL")
    return text.strip()


def _edited_environment(current: Mapping[str, str], edit: Mapping[str, str | None]) -> dict[str, str]:
    """Return the variables after an edit, or raise Invalid."""
    for name, value in edit.items():
        if not _NAME.fullmatch(name) or name.startswith("BULLPEN_"):
            raise Invalid(f"{name!r} cannot be the name of a variable here")
        if value is not None and ("\0" in value or len(value) > MAX_VALUE_LENGTH):
            raise Invalid(f"the value of {name} is too long or has a NUL")
    merged = {**current, **edit}
    variables = {name: value for name, value in merged.items() if value is not None}
    if len(variables) > MAX_VARIABLES:
        raise Invalid(f"a repository has at most {MAX_VARIABLES} variables")
    return variables
