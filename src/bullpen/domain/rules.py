"""Rules for automatic answers: what a person decided once about permissions. Where none fits exactly, we ask.

An agent describes its own call, so nothing here guesses: every word must be there and be the very same. A
call that carries more than the rule speaks of (a command, another path, an environment) is another call.
"""

import shlex
import unicodedata
from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import Struct

from .conversation import Permission
from .errors import Invalid

# The protocol's kinds of tools; `other` says nothing, so that no rule can be about it.
KINDS = ("read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode")
ANSWERS = {"allow": "allow_once", "reject": "reject_once"}
LONGEST = 4096

_PATHS = ("path", "file_path", "filePath", "abs_path", "absolutePath", "notebook_path")
_COMMANDS = ("command", "cmd")
_ELSEWHERE = ("cwd", "env", "workdir", "environment")


class Rule(Struct, frozen=True, kw_only=True, rename="camel"):
    """`answer` to an agent's calls of a kind; with a path or a command only to those on exactly that."""

    name: str
    agent_id: str
    kind: str
    answer: str
    path: str | None = None
    command: str | None = None

    def __str__(self) -> str:
        return self.name


def read_rule(value: Any) -> Rule:
    """A rule from outside; Invalid with one sentence when it is none."""
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
    """The first rule about this very question, and the option that answers it so.

    The kind must stand in the question itself; the rest may come from how the call was `announced`.
    """
    kind = None if "kind" in permission.announced else permission.tool_call.get("kind")
    call = {**(announced or {}), **_said(permission.tool_call), "kind": kind}
    for rule in rules:
        if rule.agent_id == agent_id and _is_about(rule, call):
            option_id = _only_option(permission.options, ANSWERS[rule.answer])
            if option_id is not None:
                return rule, option_id
    return None


def _said(call: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in call.items() if value is not None}


def _is_about(rule: Rule, call: dict[str, Any]) -> bool:
    if call["kind"] != rule.kind:
        return False
    given = call.get("rawInput", {})
    if not isinstance(given, dict) or any(given.get(name) for name in _ELSEWHERE):
        return False
    if _command(given) != rule.command:
        return False
    paths = _paths(call, given)
    return rule.path is None or (bool(paths) and all(path == rule.path for path in paths))


def _command(given: dict[str, Any]) -> str | None:
    """The command line of a call; None when it runs nothing. What is no command line equals no rule's."""
    present = [given[name] for name in _COMMANDS if given.get(name) is not None]
    if len(present) > 1:
        return ""
    command, args = present[0] if present else None, given.get("args", [])
    words = [command] if isinstance(command, str) else command
    match words, args:
        case None, []:
            return None
        case [str(), *_], list() if all(isinstance(word, str) for word in [*words, *args]):
            return command if isinstance(command, str) and not args else shlex.join([*words, *args])
        case _:
            return ""


def _paths(call: dict[str, Any], given: dict[str, Any]) -> list[Any]:
    """Every path a call speaks of, wherever it does."""
    parts = [*_list(call.get("locations")), *_list(call.get("content"))]
    found = [part.get("path") for part in parts if isinstance(part, dict) and "path" in part]
    return [*found, *(given[name] for name in _PATHS if name in given)]


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _only_option(options: Iterable[Any], kind: str) -> str | None:
    """The id of the one option of a kind; of several we would have to guess."""
    match [each for each in options if isinstance(each, dict) and each.get("kind") == kind]:
        case [{"optionId": str(id)}]:
            return id
        case _:
            return None


def _check_text(text: str | None) -> None:
    """What a person reads in a rule must be what it says: no invisible letters."""
    if text is None:
        return
    if not text.strip() or len(text) > LONGEST:
        raise Invalid(f"every word of a rule has 1 to {LONGEST} letters")
    if any(unicodedata.category(letter) in ("Cc", "Cf", "Co", "Cn", "Zl", "Zp") for letter in text):
        raise Invalid("a rule has letters that cannot be seen")
