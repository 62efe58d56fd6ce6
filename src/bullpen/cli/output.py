"""JSON for scripts, in the names of the wire."""

from typing import Any

import msgspec


def print_json(value: Any) -> None:
    """One document, indented."""
    print(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def print_json_line(value: Any) -> None:
    """One document on one line, seen by a reader of the pipe at once."""
    print(msgspec.json.encode(value).decode(), flush=True)
