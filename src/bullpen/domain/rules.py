"""Rules that answer permission requests automatically. If no rule matches exactly, the user is asked.

An agent describes its own tool call, so matching never guesses: each field must be present and equal. A call
that carries more than the rule names (a command, another path, an environment) does not match.
"""

import shlex
import unicodedata
from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import Struct

from .conversation import Permission
from .errors import Invalid

# The protocol's kinds of tool calls without `other`, which does not say what the call does.
KINDS = ("read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode")
ANSWERS = {"allow": "allow_once", "reject": "reject_once"}
MAX_TEXT_LENGTH = 4096

_PATH_FIELDS = ("path", "file_path", "filePath", "abs_path", "absolutePath", "notebook_path")
_COMMAND_FIELDS = ("command", "cmd")
_CONTEXT_FIELDS = ("cwd", "env", "workdir", "environment")


class Rule(Struct, frozen=True, kw_only=True, rename="camel"):
    """Give `answer` to an agent's calls of one kind; with a path or command only to calls on exactly that."""

    name: str
    agent_id: str
    kind: str
    answer: str
    path: str | None = None
    command: str | None = None

    def __str__(self) -> str:
        return self.name


def read_rule(value: Any) -> Rule:
    """Return the permission rule in untrusted data, or raise Invalid with the reason."""
    try:
        rule = msgspec.convert(value, Rule)
    except msgspec.ValidationError as error:
        raise Invalid(
            f"a rule has name, agentId, kind and answer, perhaps path or command: {error}"
        ) from None
    unknown = set(value) - {"name", "agentId", "kind", "answer", "path", "command"}
    if unknown:
        raise Invalid(
            f"a rule has no {', '.join(sorted(unknown))}: leaving it out would answer more than meant"
        )
    for text in (rule.name, rule.agent_id, rule.path, rule.command):
        _check_text(text)
    if rule.kind not in KINDS:
        raise Invalid(f"the kind of a rule is one of {', '.join(KINDS)}, not {rule.kind}")
    if rule.answer not in ANSWERS:
        raise Invalid(f"a rule answers {' or '.join(ANSWERS)}, not {rule.answer}")
    if rule.path is not None and rule.command is not None:
        raise Invalid("a rule is about a path or a command, not both")
    if rule.kind == "execute" and rule.answer == "allow" and rule.command is None:
        raise Invalid("a rule that allows execute names the command, exactly")
    return rule


def find_rule(
    rules: Iterable[Rule],
    agent_id: str | None,
    permission: Permission,
    announced: dict[str, Any] | None = None,
) -> tuple[Rule, str] | None:
    """Return the first rule that matches a permission request, with the option to choose; None if none does.

    The kind must be in the request itself; other fields may come from the earlier announcement of the call.
    """
    kind = None if "kind" in permission.announced else permission.tool_call.get("kind")
    call = {**(announced or {}), **_without_nulls(permission.tool_call), "kind": kind}
    for rule in rules:
        if rule.agent_id == agent_id and _matches(rule, call):
            option_id = _only_option(permission.options, ANSWERS[rule.answer])
            if option_id is not None:
                return rule, option_id
    return None


def _without_nulls(call: dict[str, Any]) -> dict[str, Any]:
    """Return a tool call without its fields that are null."""
    return {name: value for name, value in call.items() if value is not None}


def _matches(rule: Rule, call: dict[str, Any]) -> bool:
    """Return whether a tool call has exactly the kind, command and path of the rule."""
    if call["kind"] != rule.kind:
        return False
    arguments = call.get("rawInput", {})
    if not isinstance(arguments, dict) or any(arguments.get(name) for name in _CONTEXT_FIELDS):
        return False
    if _command(arguments) != rule.command:
        return False
    paths = _paths(call, arguments)
    return rule.path is None or (bool(paths) and all(path == rule.path for path in paths))


def _command(arguments: dict[str, Any]) -> str | None:
    """Return the command line of a tool call; None if it runs none; "", which no rule has, if ambiguous."""
    present = [arguments[name] for name in _COMMAND_FIELDS if arguments.get(name) is not None]
    if len(present) > 1:
        return ""
    command, args = present[0] if present else None, arguments.get("args", [])
    words = [command] if isinstance(command, str) else command
    match words, args:
        case None, []:
            return None
        case [str(), *_], list() if all(isinstance(word, str) for word in [*words, *args]):
            return command if isinstance(command, str) and not args else shlex.join([*words, *args])
        case _:
            return ""


def _paths(call: dict[str, Any], arguments: dict[str, Any]) -> list[Any]:
    """Return every path in a tool call: in its locations, its content and its arguments."""
    parts = [*_as_list(call.get("locations")), *_as_list(call.get("content"))]
    found = [part.get("path") for part in parts if isinstance(part, dict) and "path" in part]
    return [*found, *(arguments[name] for name in _PATH_FIELDS if name in arguments)]


def _as_list(value: Any) -> list[Any]:
    """Return the value if it is a list, else an empty list."""
    return value if isinstance(value, list) else []


def _only_option(options: Iterable[Any], kind: str) -> str | None:
    """Return the id of the permission option of this kind, or None if there is none or more than one."""
    match [each for each in options if isinstance(each, dict) and each.get("kind") == kind]:
        case [{"optionId": str(id)}]:
            return id
        case _:
            return None


def _check_text(text: str | None) -> None:
    """Raise Invalid if a text of a permission rule is empty, too long, or has invisible characters."""
    if text is None:
        return
    if not text.strip() or len(text) > MAX_TEXT_LENGTH:
        raise Invalid(f"every word of a rule has 1 to {MAX_TEXT_LENGTH} letters")
    if any(unicodedata.category(letter) in ("Cc", "Cf", "Co", "Cn", "Zl", "Zp") for letter in text):
        raise Invalid("a rule has letters that cannot be seen")
