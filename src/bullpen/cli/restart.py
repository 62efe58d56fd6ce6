"""`bullpen restart`: an agent again, whether it lives or not."""

from typing import Annotated

import typer

from ..client import Client
from .find import Found, find
from .status import way_back
from .verb import Target, new_app, with_client

app = new_app()


@app.command()
def restart(
    target: Target,
    anew: Annotated[bool, typer.Option("--new", help="Begin a new conversation.")] = False,
    if_ended: Annotated[bool, typer.Option("--if-ended", help="Leave one that lives alone.")] = False,
) -> None:
    """Start the first agent of a session again, or the one you name; it goes on where it was.

    \b
    Examples:
      bullpen restart my-session
      bullpen restart my-session/reviewer --new
    """

    async def work(client: Client) -> str:
        found = await find(client, target)
        if if_ended and _lives(found):
            return f"{found.name} lives; go on with: {way_back(found.session)}"
        if found.worker is None:
            await client.restart_session(found.session.id, continue_conversation=not anew)
        else:
            await client.restart_worker(found.session.id, found.worker.id, continue_conversation=not anew)
        return f"restarted {found.name}{', in a new conversation' if anew else ''}"

    print(with_client(work))


def _lives(found: Found) -> bool:
    """Whether the agent that would be restarted is alive."""
    return found.agent is not None and found.agent.alive
