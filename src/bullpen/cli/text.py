"""Words and colours a person reads in a terminal."""

import os
import sys
import unicodedata
from collections.abc import Collection
from datetime import UTC, datetime

from ..client import Session, Worker

COLOURS = {"green": "32", "amber": "33", "red": "31", "blue": "34", "grey": "90", "bold": "1"}
ID_LENGTH = 8
_SHORTEST_PATH = 6  # columns

_MARKS = {  # as in the page; both pass tests/golden/words/states.json
    "needs input": ("●", "amber"),
    "error": ("✕", "red"),
    "done": ("◆", "blue"),
    "working": ("◐", "green"),
    "idle": ("○", "grey"),
    "ended": ("○", "grey"),
}


def short(identifier: str) -> str:
    return identifier[:ID_LENGTH]


def mood(session: Session, unseen: Collection[str] = ()) -> str:
    """What a person wants to know first about a session; `unseen` are the workers with news for them."""
    alive = [worker for worker in session.workers if worker.alive]
    if session.status == "error":
        return "error"
    if not session.active:
        return "ended"
    if any(worker.activity == "asking" for worker in alive):
        return "needs input"
    if trouble(session):
        return "error"
    if any(worker.activity == "active" or worker.foreground or _starts(worker) for worker in alive):
        return "working"
    return "done" if any(worker.activity == "idle" and worker.id in unseen for worker in alive) else "idle"


def _starts(worker: Worker) -> bool:
    return worker.type == "agent" and worker.state == "spawning"


def trouble(session: Session) -> str | None:
    """What went wrong in a session and is not mended, in a line; a command of an agent is the agent's."""
    workers = [worker for worker in session.workers if worker.owner is None]
    failed = [worker.error or "failed" for worker in workers if worker.state == "failed"]
    turns = [why for worker in workers if (why := worker.turn_failure)]
    return next((" ".join(why.split()) for why in failed + turns), None)


def mark(word: str) -> tuple[str, str]:
    """The shape and the colour of a mood."""
    return _MARKS[word]


def label(word: str, session: Session) -> str:
    """A mood where there is room for a few words; one that ended says how."""
    return {"done": "done, not seen yet", "ended": session.status}.get(word, word)


def by_urgency(sessions: list[Session], unseen: Collection[str] = ()) -> list[Session]:
    """What needs a person first; otherwise as they come."""
    order = list(_MARKS)
    return sorted(sessions, key=lambda session: order.index(mood(session, unseen)))


def life(worker: Worker) -> str:
    """How a worker is, or how it ended."""
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
    """How long ago, in one unit."""
    seconds = int(((now or datetime.now(UTC)) - moment).total_seconds())
    for unit, length in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= length:
            return f"{seconds // length}{unit}"
    return f"{max(seconds, 0)}s"


def home_relative(path: str) -> str:
    home = os.path.expanduser("~")
    return "~" + path[len(home) :] if path == home or path.startswith(home + os.sep) else path


def printable(text: str) -> str:
    """One line without anything a terminal would obey."""
    return "".join(char if char.isprintable() else "�" for char in text)


def width(text: str) -> int:
    """Columns a text takes in a terminal."""
    return sum(_columns(char) for char in text)


def fit(text: str, columns: int) -> str:
    """The text, cut to so many columns."""
    if width(text) <= columns:
        return text
    kept, room = "", columns - 1
    for char in text:
        room -= _columns(char)
        if room < 0:
            break
        kept += char
    return kept + "…" if columns > 0 else ""


def fit_path(path: str, columns: int) -> str:
    """Return the path, shortened in the middle: its beginning and its last parts tell the most."""
    if width(path) <= columns or columns < _SHORTEST_PATH:
        return fit(path, columns)
    head = fit(path, columns // 3)  # ends with the ellipsis
    tail = ""
    for char in reversed(path):
        if width(head + char + tail) > columns:
            break
        tail = char + tail
    return head + tail


def paint(text: str, colour: str | None) -> str:
    if colour is None or not is_colourful():
        return text
    return f"\x1b[{COLOURS[colour]}m{text}\x1b[0m"


def is_colourful() -> bool:
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _columns(char: str) -> int:
    if unicodedata.combining(char) or unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1
