"""Parse a prompt to the demo agent into the actions that its words request."""

import re
from typing import NamedTuple

HELP = """\
I am the demo agent. There is no model behind me; I do what these words say, in their order:

- **help**: shows this
- **tour**: explains the steps of a change while it makes one
- **think**: thinks aloud before it answers
- **plan**: makes a plan and works through it
- **edit** `notes.md`: edits a file (also *write*, *create*)
- **run** `ls -l`: runs a command, to the end of the line
- **ask**: asks for a permission and does nothing with it
- **question**: asks you to fill in a form
- **image**: shows a picture
- **long**: answers with many words
- **slow**: takes its time, so that you can press stop
- **fail**: ends the turn with an error; **refuse**: refuses to go on
- **crash**: falls over, so that you can see what happens then

For example: `plan, edit notes.md and run date`"""

VERBS = {
    "help": "help",
    "tour": "tour",
    "think": "think",
    "plan": "plan",
    "edit": "edit",
    "write": "edit",
    "create": "edit",
    "run": "run",
    "ask": "ask",
    "permission": "ask",
    "question": "question",
    "form": "question",
    "image": "image",
    "picture": "image",
    "long": "long",
    "slow": "slow",
    "slowly": "slow",
    "fail": "fail",
    "refuse": "refuse",
    "crash": "crash",
}
DEFAULT_FILE = "demo.txt"
DEFAULT_COMMAND = "date"

_WORD = re.compile(r"`([^`]*)`|([^\s,;]+)")
_FILE = re.compile(r"[\w./-]*\w\.\w+|[\w.-]*/[\w./-]+")


class RequestedAction(NamedTuple):
    """One action, and the file or command that it applies to."""

    verb: str
    object: str = ""


def parse_actions(text: str) -> list[RequestedAction]:
    """Return the actions in a prompt, in order."""
    return [action for line in text.splitlines() for action in _parse_line(line)]


def _parse_line(line: str) -> list[RequestedAction]:
    """Return the actions in one line of a prompt."""
    actions = []
    words = list(_WORD.finditer(line))
    for number, word in enumerate(words):
        verb = VERBS.get((word[2] or "").strip(".!?:*/").lower())
        rest = words[number + 1 :]
        match verb:
            case None:
                continue
            case "run":
                actions.append(RequestedAction("run", _command(line, rest)))
                break  # the rest of the line is the command
            case "edit":
                actions.append(RequestedAction("edit", _file(rest)))
            case _:
                actions.append(RequestedAction(verb))
    return actions


def _command(line: str, rest: list[re.Match[str]]) -> str:
    """Return the command behind `run`: a quoted word, or the rest of the line."""
    if not rest:
        return DEFAULT_COMMAND
    return rest[0][1] if rest[0][1] is not None else line[rest[0].start() :].strip()


def _file(rest: list[re.Match[str]]) -> str:
    """Return the first word before the next verb that is quoted or like a file name, else DEFAULT_FILE."""
    for word in rest:
        name = word[1] or (word[2] or "").strip("!?:*").rstrip(".")
        if name.lower() in VERBS:
            break
        if word[1] or _FILE.fullmatch(name):
            return name
    return DEFAULT_FILE
