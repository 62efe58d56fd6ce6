"""`bullpen import`: the sessions of a `sessions.json`."""

import json as jsonlib
from pathlib import Path
from typing import Annotated, Any

import typer

from ..client import Client, Imported
from ..domain.errors import Invalid
from .output import print_json
from .text import short
from .verb import AsJson, new_app, with_client

app = new_app()


@app.command("import")
def import_(
    file: Annotated[Path, typer.Argument(help="A sessions.json of agent-console, old or new.")],
    json: AsJson = False,
) -> int:
    """Take in sessions that another program saved; nothing is started.

    \b
    Examples:
      bullpen import ~/.agent-console/sessions.json
    """
    entries = _read(file)

    async def work(client: Client) -> Imported:
        return await client.import_sessions(entries)

    imported = with_client(work)
    if json:
        print_json(imported)
    else:
        _report(imported)
    return 0 if imported.taken or not imported.left else 1


def _read(file: Path) -> list[Any]:
    try:
        entries = jsonlib.loads(file.expanduser().read_bytes())
    except OSError as error:
        raise Invalid(f"cannot read {file}: {error.strerror}") from None
    except ValueError as error:
        raise Invalid(f"{file} is not JSON: {error}") from None
    if not isinstance(entries, list):
        raise Invalid(f"{file} is not a sessions.json: that is a list of sessions")
    return entries


def _report(imported: Imported) -> None:
    for taken in imported.taken:
        print(f"took {taken.title} ({short(taken.session_id)}) with {taken.workers} workers, all ended")
        for note in taken.notes:
            print(f"  {note}")
    for left in imported.left:
        print(f"left {left.id}: {left.reason}")
    if not imported.taken and not imported.left:
        print("there is no session in it")
