"""Format ids, states, times and paths for a terminal, and shorten texts to its width."""

import os
import sys
import unicodedata
from datetime import UTC, datetime
from typing import NamedTuple

from ..client import SandboxLimit, Session, Worker
from ..domain.limits import format_size

COLOURS = {"green": "32", "amber": "33", "red": "31", "blue": "34", "grey": "90", "bold": "1"}
ID_LENGTH = 8
_MIN_PATH_COLUMNS = 6


class ShownState(NamedTuple):
    """What a session needs, as a word with its symbol and colour."""

    word: str
    symbol: str
    colour: str

    @property
    def label(self) -> str:
        """The word for one session; in a count, a finished turn is only "done"."""
        return "done, not seen yet" if self.word == "done" else self.word


_STATES = {  # by need, the most urgent first; as in the page, tests/golden/words/states.json checks both
    "asking": ShownState("needs input", "●", "amber"),
    "error": ShownState("error", "✕", "red"),
    "done": ShownState("done", "◆", "blue"),
    "working": ShownState("working", "◐", "green"),
    "idle": ShownState("idle", "○", "grey"),
}


def short(identifier: str) -> str:
    """Return the beginning of an id, as lists show it."""
    return identifier[:ID_LENGTH]


def shown_state(session: Session) -> ShownState:
    """Return how to show what a session needs; one that has ended and needs nothing shows how it ended."""
    state = _STATES[session.attention.need]
    if session.active or session.attention.need != "idle":
        return state
    return _STATES["error"] if session.status == "error" else state._replace(word=session.status)


def by_urgency(sessions: list[Session]) -> list[Session]:
    """Return the sessions sorted by need: those that need the user come first, those that have ended last."""
    order = list(_STATES)
    return sorted(sessions, key=lambda session: (order.index(session.attention.need), not session.active))


def worker_state(worker: Worker) -> str:
    """Return the state of a worker, or how it ended."""
    match worker.state:
        case "active":
            running = f"runs {worker.foreground}" if worker.foreground else "running"
            return worker.turn_failure or (worker.activity if worker.activity != "unknown" else running)
        case "exited" if worker.signal:
            return f"ended by {worker.signal}"
        case "exited" if worker.exit_code is not None:
            return f"ended with code {worker.exit_code}"
        case "exited":
            return "ended"
        case "failed":
            return f"failed: {worker.error}"
        case state:
            return state


def age(moment: datetime, now: datetime | None = None) -> str:
    """Return how long ago a moment was, in days, hours, minutes or seconds, such as 3h."""
    seconds = int(((now or datetime.now(UTC)) - moment).total_seconds())
    for unit, length in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= length:
            return f"{seconds // length}{unit}"
    return f"{max(seconds, 0)}s"


def home_relative(path: str) -> str:
    """Return a path with ~ for the home directory."""
    home = os.path.expanduser("~")
    return "~" + path[len(home) :] if path == home or path.startswith(home + os.sep) else path


def printable(text: str) -> str:
    """Return a text as one line without control characters, which could control the terminal."""
    return "".join(char if char.isprintable() else "�" for char in text)


def printable_lines(text: str) -> str:
    """Return a text of several lines without control characters, which could control the terminal."""
    return "\n".join(printable(line.replace("\t", "    ")) for line in text.split("\n"))


def width(text: str) -> int:
    """Return the number of terminal columns that a text occupies."""
    return sum(_columns(char) for char in text)


def fit(text: str, columns: int) -> str:
    """Return the text, cut with an ellipsis to a number of terminal columns."""
    if width(text) <= columns:
        return text
    head, room = "", columns - 1
    for char in text:
        room -= _columns(char)
        if room < 0:
            break
        head += char
    return head + "…" if columns > 0 else ""


def fit_path(path: str, columns: int) -> str:
    """Return the path, shortened in the middle: its beginning and its end are the most useful parts.

    Another text, such as the title of a column, is shortened at its end.
    """
    if width(path) <= columns or columns < _MIN_PATH_COLUMNS or "/" not in path:
        return fit(path, columns)
    head = fit(path, columns // 3)  # ends with the ellipsis
    tail = ""
    for char in reversed(path):
        if width(head + char + tail) > columns:
            break
        tail = char + tail
    return head + tail


def paint(text: str, colour: str | None) -> str:
    """Return the text with the escape sequences of a colour, if standard output shows colours."""
    if colour is None or not shows_colours():
        return text
    return f"\x1b[{COLOURS[colour]}m{text}\x1b[0m"


def shows_colours() -> bool:
    """Return whether standard output is a terminal on which colours are wanted."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _columns(char: str) -> int:
    """Return the terminal columns of a character: 0, 1 or 2."""
    if unicodedata.combining(char) or unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def describe_limit(limit: SandboxLimit) -> str:
    """Return a limit with its unit, and what enforces it."""
    if not limit.value:
        return f"{limit.name}: none"
    value = str(limit.value) if limit.name == "processes" else format_size(limit.value)
    return f"{limit.name}: {value} ({limit.enforced_by})"
