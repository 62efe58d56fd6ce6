"""Read scripts: steps, and the behavior in which real agents differ."""

import json
import re
import shlex

from .json_types import Any, Json

Step = Json

_DIRECTIVE = re.compile(r"\[\[(.*?)\]\]", re.DOTALL)
_NAMED = re.compile(r"\w+=")


class AgentBehavior:
    """How the agent behaves; the defaults are those of a correct agent."""

    def __init__(self, changes: Json) -> None:
        self.ids = "numbers"  # ids of its requests: numbers (from 0) or uuid
        self.answer_ids = "same"  # ids of its answers: same, text, none
        self.message_ids = False
        # A prompt during a turn: queue, refuse, cancel_first, fail_first, never (answered).
        self.overlap = "queue"
        self.on_cancel = "cancelled"  # answer to a cancelled prompt: cancelled, error, ignore (the cancel)
        self.replay = "load"  # methods that repeat the history: load, both (load and resume), none
        self.ignore_eof = False
        self.ignore_term = False
        self.initialize: Json = {}  # added to the result of initialize
        self.session: Json = {}  # added to the result of session/new
        self.early: list[Any] = []  # steps before the answer to session/new
        assert changes.keys() <= vars(self).keys(), changes
        vars(self).update(changes)


def read_script(path: str | None) -> Json:
    if path is None:
        return {}
    with open(path) as file:
        text = file.read()
    if not path.endswith(".toml"):
        return json.loads(text)  # type: ignore[no-any-return]
    import tomllib

    return tomllib.loads(text)


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
