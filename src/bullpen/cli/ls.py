"""`bullpen ls`: the sessions, what needs a person first."""

from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from ..client import Client, Session
from .find import find_repository
from .output import print_json
from .table import TableCell, TableColumn, path_column, print_table
from .text import age, by_urgency, fit, home_relative, label, mark, mood, paint, short, trouble
from .unseen_changes import find_unseen
from .verb import AsJson, Quiet, new_app, with_client

app = new_app()

_COLUMNS = (
    TableColumn(""),
    TableColumn("TITLE", least=12),
    TableColumn("ID"),
    TableColumn("STATE", least=5),
    TableColumn("WORKERS", least=8),
    path_column("DIRECTORY", least=8),
    TableColumn("AGE"),
)
_RECENT = timedelta(days=1)
_WHY = 60  # columns


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
    statuses = () if everything else ("active",) if json or quiet else ("active", "error")
    found, unseen = with_client(lambda client: _fetch(client, statuses, repo, news=not (json or quiet)))
    sessions = found if everything else [each for each in found if each.active]
    if json:
        print_json({"sessions": sessions})
    elif quiet:
        for session in sessions:
            print(session.id)
    else:
        if sessions:
            print_table(_COLUMNS, [_row(each, unseen) for each in by_urgency(sessions, unseen)])
        failed = 0 if everything else _failed_lately(found)
        if failed:
            print(paint(f"{failed} failed in the last day; see: bullpen ls -a", "red"))
        elif not sessions:
            print("no sessions; start one with: bullpen new")


async def _fetch(
    client: Client, statuses: tuple[str, ...], repo: str | None, news: bool
) -> tuple[list[Session], Collection[str]]:
    """The sessions, and the workers with news when that matters."""
    repo_id = (await find_repository(client, repo)).id if repo else None
    sessions = await client.sessions(status=statuses, repo_id=repo_id)
    return sessions, await find_unseen(client) if news and sessions else ()


def _failed_lately(sessions: list[Session]) -> int:
    """How many are not listed although they failed a short while ago."""
    now = datetime.now(UTC)
    return sum(not each.active and now - each.updated_at < _RECENT for each in sessions)


def _row(session: Session, unseen: Collection[str]) -> list[TableCell | str]:
    word = mood(session, unseen)
    shape, colour = mark(word)
    why = trouble(session) if word == "error" else None
    state = f"{word}: {fit(why, _WHY)}" if why else label(word, session)
    roles = ", ".join(worker.role for worker in session.workers if worker.alive)
    return [
        TableCell(shape, colour),
        session.title,
        short(session.id),
        TableCell(state, colour),
        roles or "none",
        home_relative(session.location_path),
        age(session.created_at),
    ]
