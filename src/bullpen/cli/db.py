"""`bullpen db`: the revision of the database, looked at and moved while no server runs on it."""

import asyncio
from typing import Annotated

import typer

from ..client import Client, ServerNotRunning
from ..config import Config, load
from ..domain.errors import Conflict
from .output import print_json
from .verb import AsJson, new_app

app = new_app("Look at or move the revision of the database.")


@app.command()
def current(json: AsJson = False) -> None:
    """Print the revision the database is at."""
    from ..store import schema  # noqa: PLC0415

    revision = schema.current(load().database_url)
    if json:
        print_json({"revision": revision})
    else:
        print(revision or "the database is empty")


@app.command()
def upgrade(to: Annotated[str, typer.Argument(help="A revision.")] = "head") -> None:
    """Move the database up, by default to the newest revision. `bullpen serve` does this by itself."""
    settings = _without_server()
    from ..store import identity, schema  # noqa: PLC0415

    schema.upgrade(settings.database_url, to, identity.read_identity(settings.home, take_over=False))
    print(f"the database is at {schema.current(settings.database_url)}")


@app.command()
def downgrade(to: Annotated[str, typer.Argument(help="A revision, or base for an empty database.")]) -> None:
    """Move the database down, for an older Bullpen."""
    settings = _without_server()
    from ..store import identity, schema  # noqa: PLC0415

    schema.downgrade(settings.database_url, to, identity.read_identity(settings.home, take_over=False))
    print(f"the database is at {schema.current(settings.database_url) or 'nothing: it is empty'}")


def _without_server() -> Config:
    """The settings, when no server works on this database."""
    settings = load()
    try:
        asyncio.run(_ask_server())
    except ServerNotRunning:
        return settings
    raise Conflict("the server is running; stop it before moving its database")


async def _ask_server() -> None:
    async with Client() as client:
        await client.health()
