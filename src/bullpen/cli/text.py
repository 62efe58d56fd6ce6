"""Format ids, states, times and paths for a terminal, and shorten texts to its width."""

import os
import sys
import unicodedata
from collections.abc import Collection
from datetime import UTC, datetime

from ..client import Session, Worker

COLOURS = {"green": "32", "amber": "33", "red": "31", "blue": "34", "grey": "90", "bold": "1"}
ID_LENGTH = 8
_MIN_PATH_COLUMNS = 6

_SYMBOLS = {  # as in the page; tests/golden/words/states.json checks both
    "needs input": ("●", "amber"),
    "error": ("✕", "red"),
    "done": ("◆", "blue"),
    "working": ("◐", "green"),
    "idle": ("○", "grey"),
    "ended": ("○", "grey"),
}


def short(identifier: str) -> str:
    """Return the beginning of an id, as lists show it."""
    return identifier[:ID_LENGTH]


def display_state(session: Session, unseen: Collection[str] = ()) -> str:
    """Return the state of a session in one or two words, such as working or needs input.

    `unseen` has the ids of workers whose last turn ended and was not seen yet.
    """
    alive = [worker for worker in session.workers if worker.alive]
    if session.status == "error":
        return "error"
    if not session.active:
        return "ended"
    if any(worker.activity == "asking" for worker in alive):
        return "needs input"
    if failure_reason(session):
        return "error"
    if any(
        worker.activity == "active" or worker.foreground or _is_starting_agent(worker) for worker in alive
    ):
        return "working"
    return "done" if any(worker.activity == "idle" and worker.id in unseen for worker in alive) else "idle"


def _is_starting_agent(worker: Worker) -> bool:
    """Return whether the worker is an agent that is starting."""
    return worker.type == "agent" and worker.state == "spawning"


def failure_reason(session: Session) -> str | None:
    """Return in one line why a worker or a turn failed; terminals that an agent runs do not count."""
    workers = [worker for worker in session.workers if worker.owner is None]
    failed = [worker.error or "failed" for worker in workers if worker.state == "failed"]
    turns = [reason for worker in workers if (reason := worker.turn_failure)]
    return next((" ".join(reason.split()) for reason in failed + turns), None)


def state_symbol(state: str) -> tuple[str, str]:
    """Return the symbol and the colour of a display state."""
    return _SYMBOLS[state]


def state_label(state: str, session: Session) -> str:
    """Return a display state in a few words; that of an ended session says how it ended."""
    return {"done": "done, not seen yet", "ended": session.status}.get(state, state)


def by_urgency(sessions: list[Session], unseen: Collection[str] = ()) -> list[Session]:
    """Return the sessions sorted by state: those that need the user come first."""
    order = list(_SYMBOLS)
    return sorted(sessions, key=lambda session: order.index(display_state(session, unseen)))


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
    """Return the path, shortened in the middle: its beginning and its end are the most useful parts."""
    if width(path) <= columns or columns < _MIN_PATH_COLUMNS:
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
