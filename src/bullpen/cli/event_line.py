"""Format an event as one readable line."""

import json
import sys
from shutil import get_terminal_size

from ..client import Event
from .text import fit, paint, printable, width


def describe(event: Event) -> str:
    """Return the seq, time, role, type and data of an event in a line, cut to the width of a terminal."""
    head = f"{event.seq:>5}  {event.timestamp.astimezone():%H:%M:%S}  "
    event_type = event.type.replace("_", " ")
    text = printable(f"{event.role}: {event_type}" if event.role else event_type)
    details = printable(_details(event.data))
    if sys.stdout.isatty():
        details = fit(details, max(0, get_terminal_size().columns - width(head + text) - 2))
    return f"{paint(head, 'grey')}{text}  {paint(details, 'grey')}".rstrip()


def _details(data: object) -> str:
    """Return the data of an event as name=value pairs, without empty values."""
    if not isinstance(data, dict):
        return ""
    present = {name: value for name, value in data.items() if value is not None}
    return " ".join(f"{name}={_format_value(value)}" for name, value in present.items())


def _format_value(value: object) -> str:
    """Return a value of an event as short JSON; a single word without quotes."""
    return value if isinstance(value, str) and " " not in value else json.dumps(value, ensure_ascii=False)
