"""`bullpen stop`: end sessions or workers gracefully."""

from collections.abc import Callable

import click

from ..client import Client
from .find import SessionMatch, find
from .output import print_json
from .verb import json_option, with_client


@click.command()
@click.argument(
    "targets", nargs=-1, required=True, metavar="SESSION|WORKER...", help="Titles, ids or session/role."
)
@json_option
def stop(targets: tuple[str, ...], json: bool) -> None:
    """End sessions or single workers, gracefully. Their history stays.

    \b
    Examples:
      bullpen stop my-session
      bullpen stop my-session/terminal-2
    """
    say = (lambda _: None) if json else print
    ended = with_client(lambda client: _stop(client, targets, say))
    if json:
        sessions = [each.session for each in ended if each.worker is None]
        print_json({"sessions": sessions, "workers": [each.worker for each in ended if each.worker]})


async def _stop(client: Client, targets: tuple[str, ...], say: Callable[[str], None]) -> list[SessionMatch]:
    """End the named sessions and workers, and return them as they are now."""
    ended = []
    for found in [await find(client, target) for target in targets]:
        if found.session.active:
            ended.append(await _end(client, found))
            say(f"stopped {found.name}")
        else:
            ended.append(found)
            say(f"{found.name} has ended already")
    return ended


async def _end(client: Client, found: SessionMatch) -> SessionMatch:
    """End a session or a worker, and return it as it is afterwards."""
    session, worker = found
    if worker is None:
        return SessionMatch(await client.complete_session(session.id))
    return SessionMatch(session, await client.end_worker(session.id, worker.id) or worker)
