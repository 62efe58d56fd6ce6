"""`bullpen config`: each setting and where it comes from."""

import os
from typing import Any

from ..config import OPTIONS, Config, Option, config_file, load
from .output import print_json
from .table import Column, print_table
from .text import home_relative
from .verb import AsJson, new_app

app = new_app()

_COLUMNS = (
    Column("SETTING"),
    Column("VALUE", least=12),
    Column("FROM", least=8),
    Column("VARIABLE", least=8),
)


@app.command()
def config(json: AsJson = False) -> None:
    """Show every setting and where it comes from: flag, environment, file or default.

    \b
    Examples:
      bullpen config
      bullpen config --json | jq -r .settings.home.value
    """
    settings = load()
    path = config_file(os.environ)
    if json:
        values = {
            option.name: {"value": _value(settings, option), "source": settings.sources[option.name]}
            for option in OPTIONS
        }
        print_json({"file": str(path), "settings": values})
        return
    rows = [
        [
            option.name,
            _words(_value(settings, option)),
            home_relative(settings.sources[option.name]),
            option.env,
        ]
        for option in OPTIONS
    ]
    print_table(_COLUMNS, rows)
    print(f"\nThe file is {home_relative(str(path))}{'' if path.exists() else ' (there is none yet)'}.")


def _value(settings: Config, option: Option) -> Any:
    value = getattr(settings, option.name)
    if option.secret and value is not None:
        return "(hidden)"
    if isinstance(value, tuple):
        return [str(each) for each in value]
    return value if value is None or isinstance(value, bool | int) else str(value)


def _words(value: Any) -> str:
    match value:
        case None | []:
            return "(none)"
        case bool():
            return "true" if value else "false"
        case list():
            return ", ".join(value)
        case _:
            return home_relative(str(value))
