"""`bullpen rm`: cancel sessions, and with --purge remove their data."""

import sys
from collections.abc import Callable

import click

from ..client import Client, Session
from ..domain.errors import Invalid
from .confirm import confirm
from .find import find_session
from .output import print_json
from .text import short
from .verb import json_option, with_client


@click.command()
@click.argument(
    "sessions", nargs=-1, required=True, metavar="SESSION...", help="Titles, ids or their beginnings."
)
@click.option("--purge", is_flag=True, help="Also remove their data permanently.")
@click.option("--yes", "-y", "--force", "-f", is_flag=True, help="Do not ask before a purge.")
@json_option
def rm(sessions: tuple[str, ...], purge: bool, yes: bool, json: bool) -> None:
    """Cancel sessions and end their workers. History stays unless purged; worktrees always stay.

    \b
    Examples:
      bullpen rm my-session
      bullpen rm --purge my-session
    """
    say = (lambda _: None) if json else print
    removed = with_client(lambda client: _remove(client, sessions, purge, yes, say))
    if json:
        print_json({"sessions": removed})


async def _remove(
    client: Client, names: tuple[str, ...], purge: bool, yes: bool, say: Callable[[str], None]
) -> list[Session]:
    """Cancel or purge the named sessions; return them as they are now or were last."""
    sessions = [await find_session(client, name) for name in names]
    if purge and not yes:
        _confirm_purge(sessions)
    removed = []
    for session in sessions:
        if session.active or purge:
            removed.append(await client.delete_session(session.id, purge=purge) or session)
            say(f"{'purged' if purge else 'cancelled'} {session.title}")
        else:
            removed.append(session)
            advice = f"remove its data with: bullpen rm --purge {short(session.id)}"
            say(f"{session.title} has ended already; {advice}")
    return removed


def _confirm_purge(sessions: list[Session]) -> None:
    """Ask the user before a purge; abort if the answer is no."""
    if not sys.stdin.isatty():
        raise Invalid("a purge cannot be undone; without a terminal to confirm it, add --yes")
    titles = ", ".join(session.title for session in sessions)
    if not confirm(f"Remove {titles} and all their history permanently?", default=False):
        raise click.Abort
