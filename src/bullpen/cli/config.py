"""`bullpen config`: show the settings with their sources and the running server's values, and change them."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from msgspec.structs import replace

from ..client import Client, Setting
from ..config import HIDDEN, config_file, describe, find_definition, load
from ..domain.errors import BullpenError, Invalid
from .config_edit import read_config, replace_config, toml_value, with_setting, without_setting
from .output import print_json
from .table import TableColumn, path_column, print_table
from .text import home_relative
from .verb import json_option, with_client
from .verb_group import VerbGroup

_COLUMNS = (
    TableColumn(""),
    TableColumn("SETTING"),
    TableColumn("VALUE", least=12),
    path_column("FROM", least=8),
)
_RUNNING_COLUMNS = (
    TableColumn("SETTING"),
    TableColumn("RUNNING SERVER", least=14),
    path_column("FROM", least=8),
)
_DIFFERS = "*"


config = VerbGroup(help="Show every setting and where it comes from, or change one.")


@config.command()
@json_option
def ls(json: bool) -> None:
    """Show every setting, where it comes from, and where the running server uses another value.

    A setting comes from a flag, the environment, the file or is the default. The other verbs change the file.

    \b
    Examples:
      bullpen config
      bullpen config --json | jq -r .settings.home.value
      bullpen config set max_sessions 20
    """
    next_start, path = describe(load()), config_file(os.environ)
    running = _running_settings()
    if json:
        print_json({"file": str(path), "settings": next_start, "running": running})
    else:
        _print_settings(next_start, path, running)


@config.command("set")
@click.argument("setting", help="Its name; see: bullpen config")
@click.argument("value", help="Its value, as in the environment; - reads standard input.")
def set_(setting: str, value: str) -> None:
    """Write a setting into the configuration file.

    \b
    Examples:
      bullpen config set max_sessions 20
      bullpen config set notify_command "notify-send --app-name=Bullpen"
      bullpen config set token - < secret.txt
    """
    definition = find_definition(setting)
    text = sys.stdin.read().strip() if value == "-" else value
    try:
        parsed = definition.read(text)
    except ValueError as error:
        raise Invalid(f"{definition.name} {error}") from None
    # A rule has no text of its own; the server reads the JSON that the user wrote.
    written = toml_value(text if definition.name == "rules" else parsed)
    _change(definition.name, lambda config: with_setting(config, definition.name, written))


@config.command()
@click.argument("setting", help="Its name; see: bullpen config")
def unset(setting: str) -> None:
    """Remove a setting from the configuration file."""
    name = find_definition(setting).name
    _change(name, lambda config: without_setting(config, name))


def _change(name: str, edit: Callable[[str], str]) -> None:
    """Change the configuration file, and print when the value is used. The log level is changed at once."""
    path = config_file(os.environ)
    running = _running_settings()  # before the change, which may be of the address of the server
    old = read_config(path)
    if (new := edit(old)) != old:
        replace_config(path, new)
    setting = describe(load())[name]
    print(f"{name} is {_format_value(setting['value'])} ({home_relative(setting['source'])}).")
    if setting["source"] not in (str(path), "default"):
        print(f"{setting['source'].capitalize()} has priority over {home_relative(str(path))}.")
    if name == "log_level" and running is not None and name in running:
        with_client(lambda client: client.set_log_level(setting["value"]))
    print(_when_used(name, setting["value"], running))


def _when_used(name: str, value: Any, running: dict[str, Setting] | None) -> str:
    """Return a sentence that says when the server uses the value of a setting."""
    used = running.get(name) if running is not None else None
    if used is None:
        return "The server uses it from its next start on."
    if name == "log_level":
        return "The running server uses it now."
    if used.value == value != HIDDEN:
        return "The running server uses this value."
    given = f", from its {used.source}," if used.source in ("flag", "environment") else ""
    return f"The running server uses {_format_value(used.value)}{given} until it is restarted."


def _print_settings(
    next_start: dict[str, dict[str, Any]], path: Path, running: dict[str, Setting] | None
) -> None:
    """Print the settings of the next start, and those of the running server that differ from them."""
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
    """Return the settings of the running server; None if none answers or this token may not read them."""

    async def ask(client: Client) -> dict[str, Setting]:
        settings = await client.settings()
        started_with = settings.started_with
        if "log_level" in started_with:
            started_with["log_level"] = replace(started_with["log_level"], value=settings.log_level)
        return started_with

    try:
        return with_client(ask)
    except BullpenError:  # the settings of the next start are shown even if the server fails
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
