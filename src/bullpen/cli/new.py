"""`bullpen new`: a session with a terminal in a directory."""

import os
import shutil
import sys
from pathlib import Path
from typing import Annotated

import typer

from ..client import Client, Session
from ..domain.errors import BullpenError
from .attach import attach_to
from .find import Found
from .output import print_json
from .terminal.tty import Tty
from .text import short
from .verb import AsJson, Quiet, new_app, with_client

app = new_app()


@app.command()
def new(
    directory: Annotated[Path, typer.Argument(help="Where it works.")] = Path("."),
    name: Annotated[str | None, typer.Option("--name", "-n", help="The session's title.")] = None,
    detach: Annotated[bool, typer.Option("--detach", "-d", help="Start it and come back at once.")] = False,
    json: AsJson = False,
    quiet: Quiet = False,
) -> int:
    """Start a terminal in a new session and attach to it.

    \b
    Examples:
      bullpen new
      bullpen new ~/src/site --name site
      id=$(bullpen new -d -q) && bullpen attach $id
    """
    path = os.path.abspath(directory.expanduser())
    if not (detach or json or quiet):
        tty = Tty("to start it without one use: bullpen new --detach")
        return with_client(lambda client: _attach_to_new(client, tty, path, name))
    session = with_client(lambda client: _start_session(client, path, name))
    if json:
        print_json(session)
    else:
        print(
            session.id
            if quiet
            else f"started {session.title}; attach with: bullpen attach {short(session.id)}"
        )
    return 0


async def _attach_to_new(client: Client, tty: Tty, path: str, name: str | None) -> int:
    return await attach_to(client, tty, await _start(client, path, name))


async def _start_session(client: Client, path: str, name: str | None) -> Session:
    return await client.session((await _start(client, path, name)).session.id)


async def _start(client: Client, path: str, name: str | None) -> Found:
    session = await client.create_session(location_path=path, title=name)
    cols, rows = shutil.get_terminal_size() if sys.stdout.isatty() else (None, None)
    try:
        return Found(session, await client.add_worker(session.id, "terminal", cols=cols, rows=rows))
    except BullpenError:
        await client.delete_session(session.id, purge=True)  # nobody asked for an empty one
        raise
