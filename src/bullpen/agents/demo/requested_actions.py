"""What a person wants of the demo agent, read from simple words in a prompt."""

import re
from typing import NamedTuple

HELP = """\
I am the demo agent. There is no model behind me; I do what these words say, in their order:

- **help**: shows this
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
    """One thing to do, and to what."""

    verb: str
    object: str = ""


def read_wishes(text: str) -> list[RequestedAction]:
    """The wishes in a prompt, in order; none when it has none of the words."""
    return [wish for line in text.splitlines() for wish in _in_line(line)]


def _in_line(line: str) -> list[RequestedAction]:
    wishes = []
    words = list(_WORD.finditer(line))
    for number, word in enumerate(words):
        verb = VERBS.get((word[2] or "").strip(".!?:*/").lower())
        rest = words[number + 1 :]
        match verb:
            case None:
                continue
            case "run":
                wishes.append(RequestedAction("run", _command(line, rest)))
                break  # the rest of the line is the command
            case "edit":
                wishes.append(RequestedAction("edit", _file(rest)))
            case _:
                wishes.append(RequestedAction(verb))
    return wishes


def _command(line: str, rest: list[re.Match[str]]) -> str:
    if not rest:
        return DEFAULT_COMMAND
    return rest[0][1] if rest[0][1] is not None else line[rest[0].start() :].strip()


def _file(rest: list[re.Match[str]]) -> str:
    for word in rest:
        name = word[1] or (word[2] or "").strip("!?:*").rstrip(".")
        if name.lower() in VERBS:
            break
        if word[1] or _FILE.fullmatch(name):
            return name
    return DEFAULT_FILE
