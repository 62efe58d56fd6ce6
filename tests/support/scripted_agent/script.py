"""Read scripts: steps, and the behavior in which real agents differ."""

import json
import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Step = dict[str, Any]

_DIRECTIVE = re.compile(r"\[\[(.*?)\]\]", re.DOTALL)
_NAMED = re.compile(r"\w+=")


@dataclass
class AgentBehavior:
    """How the agent behaves; the defaults are those of a correct agent."""

    ids: str = "numbers"  # ids of its requests: numbers (from 0) or uuid
    answer_ids: str = "same"  # ids of its answers: same, text, none
    message_ids: bool = False
    # A prompt during a turn: queue, refuse, cancel_first, fail_first, never (answered).
    overlap: str = "queue"
    on_cancel: str = "cancelled"  # answer to a cancelled prompt: cancelled, error, ignore (the cancel)
    replay: str = "load"  # methods that repeat the history: load, both (load and resume), none
    ignore_eof: bool = False
    ignore_term: bool = False
    initialize: dict[str, Any] = field(default_factory=dict)  # added to the result of initialize
    session: dict[str, Any] = field(default_factory=dict)  # added to the result of session/new
    early: list[Any] = field(default_factory=list)  # steps before the answer to session/new


def read_script(path: Path | None) -> dict[str, Any]:
    if path is None:
        return {}
    if path.suffix != ".toml":
        return json.loads(path.read_text())  # type: ignore[no-any-return]
    import tomllib

    return tomllib.loads(path.read_text())


def read_steps(source: str | list[Any]) -> list[Step]:
    """Return the steps of a list of objects and texts, or of the directives in a prompt."""
    if isinstance(source, str):
        source = _DIRECTIVE.findall(source)
    return [read_step(step) if isinstance(step, str) else step for step in source]


def read_step(text: str) -> Step:
    """Parse a step such as `stream n=3 delay=0.1`; the words without `=` are its `text`."""
    name, *words = shlex.split(text)
    named = dict(word.split("=", 1) for word in words if _NAMED.match(word))
    rest = " ".join(word for word in words if not _NAMED.match(word))
    step: Step = {"do": name, **{key: _value(value) for key, value in named.items()}}
    return step | ({"text": rest} if rest else {})


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
