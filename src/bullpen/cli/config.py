"""`bullpen config`: show each setting, its source, and the value that the running server uses."""

import os
from typing import Any

import click

from ..client import Client, ServerNotRunning, Setting
from ..config import config_file, describe, load
from ..domain.errors import Forbidden, Unauthorized
from .output import print_json
from .table import TableColumn, print_table
from .text import home_relative
from .verb import json_option, with_client

_COLUMNS = (
    TableColumn(""),
    TableColumn("SETTING"),
    TableColumn("VALUE", least=12),
    TableColumn("FROM", least=8),
)
_RUNNING_COLUMNS = (
    TableColumn("SETTING"),
    TableColumn("RUNNING SERVER", least=14),
    TableColumn("FROM", least=8),
)
_DIFFERS = "*"


@click.command()
@json_option
def config(json: bool) -> None:
    """Show every setting, where it comes from, and where the running server uses another value.

    A setting comes from a flag, the environment, the file or is the default.

    \b
    Examples:
      bullpen config
      bullpen config --json | jq -r .settings.home.value
    """
    next_start, path = describe(load()), config_file(os.environ)
    running = _running_settings()
    if json:
        print_json({"file": str(path), "settings": next_start, "running": running})
        return
    used = running or {}
    differing = {
        name for name, each in next_start.items() if name in used and used[name].value != each["value"]
    }
    rows = [
        [_DIFFERS * (name in differing), name, _format_value(each["value"]), home_relative(each["source"])]
        for name, each in next_start.items()
    ]
    print_table(_COLUMNS, rows)
    print(f"\nThe file is {home_relative(str(path))}{'' if path.exists() else ' (there is none yet)'}.")
    if running is None:
        print("No running server could be asked; these are the values for the next start.")
    elif not differing:
        print("The running server uses the same values.")
    else:
        print(f"{_DIFFERS} The running server uses another value until it is restarted:\n")
        others = [(name, each) for name, each in used.items() if name in differing]
        print_table(
            _RUNNING_COLUMNS,
            [[name, _format_value(each.value), home_relative(each.source)] for name, each in others],
        )


def _running_settings() -> dict[str, Setting] | None:
    """Return the settings of the running server; None if none runs or this token may not read them."""

    async def ask(client: Client) -> dict[str, Setting]:
        return (await client.settings()).started_with

    try:
        return with_client(ask)
    except (ServerNotRunning, Forbidden, Unauthorized):
        return None


def _format_value(value: Any) -> str:
    """Return the value of a setting as text for the table."""
    match value:
        case None | []:
            return "(none)"
        case bool():
            return "true" if value else "false"
        case list():
            return ", ".join(value)
        case _:
            return home_relative(str(value))
