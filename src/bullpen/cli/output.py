"""Print JSON for scripts, with the field names of the REST API."""

from typing import Any

import msgspec


def print_json(value: Any) -> None:
    """Print a value as an indented JSON document."""
    print(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def print_json_line(value: Any) -> None:
    """Print a value as JSON on one line and flush it, so that a pipe's reader gets it at once."""
    print(msgspec.json.encode(value).decode(), flush=True)
