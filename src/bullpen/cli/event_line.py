"""One event as a line a person can read."""

import json
import sys
from shutil import get_terminal_size

from ..client import Event
from .text import fit, paint, printable, width


def describe(event: Event) -> str:
    """Number, time, who, what; cut to the terminal when there is one."""
    head = f"{event.seq:>5}  {event.timestamp.astimezone():%H:%M:%S}  "
    what = event.type.replace("_", " ")
    text = printable(f"{event.role}: {what}" if event.role else what)
    details = printable(_details(event.data))
    if sys.stdout.isatty():
        details = fit(details, max(0, get_terminal_size().columns - width(head + text) - 2))
    return f"{paint(head, 'grey')}{text}  {paint(details, 'grey')}".rstrip()


def _details(data: object) -> str:
    """What the event says, without what it leaves open."""
    if not isinstance(data, dict):
        return ""
    said = {name: value for name, value in data.items() if value is not None}
    return " ".join(f"{name}={_word(value)}" for name, value in said.items())


def _word(value: object) -> str:
    return value if isinstance(value, str) and " " not in value else json.dumps(value, ensure_ascii=False)
