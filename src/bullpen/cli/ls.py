"""`bullpen ls`: the sessions, what needs a person first."""

from typing import Annotated

import typer

from ..client import Client, Session
from .find import find_repository
from .output import print_json
from .table import Cell, Column, print_table
from .text import age, by_urgency, home_relative, mark, mood, short
from .verb import AsJson, Quiet, new_app, with_client

app = new_app()

_COLUMNS = (
    Column(""),
    Column("TITLE", least=12),
    Column("ID"),
    Column("STATE", least=5),
    Column("WORKERS", least=8),
    Column("DIRECTORY", least=8),
    Column("AGE"),
)


@app.command()
def ls(
    everything: Annotated[bool, typer.Option("--all", "-a", help="Ended sessions too.")] = False,
    repo: Annotated[str | None, typer.Option(help="Only those of a repository.")] = None,
    json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """List sessions.

    \b
    Examples:
      bullpen ls
      bullpen ls --all --json | jq '.sessions[].title'
      bullpen stop $(bullpen ls -q)
    """
    sessions = with_client(lambda client: _fetch(client, everything, repo))
    if json:
        print_json({"sessions": sessions})
    elif quiet:
        for session in sessions:
            print(session.id)
    elif sessions:
        print_table(_COLUMNS, [_row(session) for session in by_urgency(sessions)])
    else:
        print("no sessions; start one with: bullpen new")


async def _fetch(client: Client, everything: bool, repo: str | None) -> list[Session]:
    repo_id = (await find_repository(client, repo)).id if repo else None
    return await client.sessions(status=() if everything else ("active",), repo_id=repo_id)


def _row(session: Session) -> list[Cell | str]:
    word = mood(session)
    shape, colour = mark(word)
    roles = ", ".join(worker.role for worker in session.workers if worker.alive)
    return [
        Cell(shape, colour),
        session.title,
        short(session.id),
        Cell(session.status if word == "ended" else word, colour),
        roles or "none",
        home_relative(session.location_path),
        age(session.created_at),
    ]
