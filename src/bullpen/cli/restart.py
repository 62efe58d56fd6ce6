"""`bullpen restart`: an agent again, whether it lives or not."""

from typing import Annotated

import typer

from ..client import Client
from .find import Found, find
from .verb import Target, new_app, with_client

app = new_app()


@app.command()
def restart(
    target: Target,
    anew: Annotated[bool, typer.Option("--new", help="Begin a new conversation.")] = False,
) -> None:
    """Start the first agent of a session again, or the one you name; it goes on where it was.

    \b
    Examples:
      bullpen restart my-session
      bullpen restart my-session/reviewer --new
    """

    async def work(client: Client) -> Found:
        found = await find(client, target)
        if found.worker is None:
            await client.restart_session(found.session.id, continue_conversation=not anew)
        else:
            await client.restart_worker(found.session.id, found.worker.id, continue_conversation=not anew)
        return found

    print(f"restarted {with_client(work).name}{', in a new conversation' if anew else ''}")
