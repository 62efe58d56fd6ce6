"""`bullpen db`: show or change the schema revision of the database while no server uses it."""

import asyncio

import click

from ..client import Client, ServerNotRunning
from ..config import Config, load
from ..domain.errors import Conflict
from .confirm import confirm
from .output import print_json
from .text import home_relative
from .verb import json_option
from .verb_group import VerbGroup

db = VerbGroup(help="Show or change the schema revision of the database.")

_ADVICE = "A copy of an SQLite database is kept; copy any other with its own tools first."


@db.command()
@json_option
def current(json: bool) -> None:
    """Print the revision the database is at."""
    from ..store import schema  # noqa: PLC0415

    revision = schema.current(load().database_url)
    if json:
        print_json({"revision": revision})
    else:
        print(revision or "the database is empty")


@db.command()
@click.argument("to", default="head", help="The revision.")
def upgrade(to: str) -> None:
    """Upgrade the database, by default to the newest revision. `bullpen serve` does this automatically."""
    settings = _without_server()
    from ..store import identity, schema  # noqa: PLC0415

    schema.upgrade(settings.database_url, to, identity.read_identity(settings.home, take_over=False))
    print(f"the database is at {schema.current(settings.database_url)}")


@db.command()
@click.argument("to", help="The revision, or base for an empty database.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
def downgrade(to: str, yes: bool) -> None:
    """Downgrade the database for an older Bullpen. A copy of an SQLite database is kept.

    \b
    Examples:
      bullpen db downgrade 0009
      bullpen db downgrade base --yes
    """
    settings = _without_server()
    from ..store import identity, schema  # noqa: PLC0415
    from ..store.copying import copy_database  # noqa: PLC0415

    if not yes and not confirm(f"Remove the data that revision {to} cannot store? {_ADVICE}", default=False):
        raise Conflict("the database was not changed; to downgrade it without a question, add --yes")
    copy = copy_database(settings.database_url)
    schema.downgrade(settings.database_url, to, identity.read_identity(settings.home, take_over=False))
    if copy is not None:
        print(f"a copy of the database is in {home_relative(str(copy))}")
    print(f"the database is at {schema.current(settings.database_url) or 'nothing: it is empty'}")


def _without_server() -> Config:
    """Return the settings; raise Conflict if a server uses the database."""
    settings = load()
    try:
        asyncio.run(_ask_server())
    except ServerNotRunning:
        return settings
    raise Conflict("the server is running; stop it before you change its database")


async def _ask_server() -> None:
    """Send a request to the server; raise ServerNotRunning if none runs."""
    async with Client() as client:
        await client.health()
