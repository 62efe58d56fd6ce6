"""The language of scripts: steps, and how an agent behaves where real ones differ."""

import json
import re
import shlex
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Step = dict[str, Any]

_DIRECTIVE = re.compile(r"\[\[(.*?)\]\]", re.DOTALL)
_NAMED = re.compile(r"\w+=")


@dataclass
class Manners:
    ids: str = "numbers"  # of its own requests: numbers from 0, or uuid
    answer_ids: str = "same"  # how it gives ours back: same, text, none
    message_ids: bool = False
    overlap: str = "queue"  # a second prompt is: queue, refuse, cancel_first, fail_first, never (answered)
    on_cancel: str = "cancelled"  # or error, or ignore
    replay: str = "load"  # what is repeated: load, both (resume too), none
    ignore_eof: bool = False
    ignore_term: bool = False
    initialize: dict[str, Any] = field(default_factory=dict)  # added to the answer
    session: dict[str, Any] = field(default_factory=dict)  # added to the answer to session/new
    early: list[Any] = field(default_factory=list)  # steps before session/new is answered


def read_script(path: Path | None) -> dict[str, Any]:
    if path is None:
        return {}
    text = path.read_text()
    return tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)


def read_steps(said: str | list[Any]) -> list[Step]:
    """Steps from a list of objects and texts, or from the directives in a prompt."""
    if isinstance(said, str):
        said = _DIRECTIVE.findall(said)
    return [read_step(step) if isinstance(step, str) else step for step in said]


def read_step(text: str) -> Step:
    """`stream n=3 delay=0.1` as an object; the words without `=` are its text."""
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
