"""`bullpen rm`: sessions cancelled, and purged when that is asked for twice."""

import sys
from collections.abc import Callable
from typing import Annotated

import typer

from ..client import Client, Session
from ..domain.errors import Invalid
from .find import find_session
from .output import print_json
from .text import short
from .verb import AsJson, new_app, with_client

app = new_app()


@app.command()
def rm(
    sessions: Annotated[
        list[str], typer.Argument(metavar="SESSION...", help="Titles, ids or their beginnings.")
    ],
    purge: Annotated[bool, typer.Option("--purge", help="Remove their data too, for ever.")] = False,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", "--force", "-f", help="Do not ask before a purge.")
    ] = False,
    json: AsJson = False,
) -> None:
    """Cancel sessions and end what runs in them. History stays unless purged; worktrees always stay.

    \b
    Examples:
      bullpen rm my-session
      bullpen rm --purge my-session
    """
    say = (lambda _: None) if json else print
    gone = with_client(lambda client: _rm(client, sessions, purge, yes, say))
    if json:
        print_json({"sessions": gone})


async def _rm(
    client: Client, names: list[str], purge: bool, yes: bool, say: Callable[[str], None]
) -> list[Session]:
    """What was meant, as it is or last was; each is told of when it is gone."""
    sessions = [await find_session(client, name) for name in names]
    if purge and not yes:
        _ask(sessions)
    gone = []
    for session in sessions:
        if session.active or purge:
            gone.append(await client.delete_session(session.id, purge=purge) or session)
            say(f"{'purged' if purge else 'cancelled'} {session.title}")
        else:
            gone.append(session)
            advice = f"remove its data with: bullpen rm --purge {short(session.id)}"
            say(f"{session.title} has ended already; {advice}")
    return gone


def _ask(sessions: list[Session]) -> None:
    if not sys.stdin.isatty():
        raise Invalid("a purge cannot be undone; say --yes when nobody can be asked")
    titles = ", ".join(session.title for session in sessions)
    typer.confirm(f"Remove {titles} and all their history for ever?", abort=True, err=True)
