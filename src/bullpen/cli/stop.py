"""`bullpen stop`: the graceful end of sessions and workers."""

from typing import Annotated

import typer

from ..client import Client
from .find import find
from .verb import new_app, with_client

app = new_app()


@app.command()
def stop(
    targets: Annotated[
        list[str], typer.Argument(metavar="SESSION|WORKER...", help="Titles, ids or session/role.")
    ],
) -> None:
    """End sessions or single workers, gracefully. Their history stays.

    \b
    Examples:
      bullpen stop my-session
      bullpen stop my-session/terminal-2
    """
    with_client(lambda client: _stop(client, targets))


async def _stop(client: Client, targets: list[str]) -> None:
    for found in [await find(client, target) for target in targets]:
        if not found.session.active:
            print(f"{found.name} has ended already")
            continue
        if found.worker is not None:
            await client.end_worker(found.session.id, found.worker.id)
        else:
            await client.complete_session(found.session.id)
        print(f"stopped {found.name}")
