"""`bullpen restart`: an agent again, whether it lives or not."""

from typing import Annotated

import typer

from ..client import Client, Worker
from .find import SessionMatch, find
from .output import print_json
from .status import way_back
from .verb import AsJson, Quiet, Target, new_app, with_client

app = new_app()


@app.command()
def restart(
    target: Target,
    anew: Annotated[bool, typer.Option("--new", help="Begin a new conversation.")] = False,
    if_ended: Annotated[bool, typer.Option("--if-ended", help="Leave one that lives alone.")] = False,
    json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Start the first agent of a session again, or the one you name; it goes on where it was.

    \b
    Examples:
      bullpen restart my-session
      bullpen restart my-session/reviewer --new
    """

    async def work(client: Client) -> tuple[Worker, str]:
        found = await find(client, target)
        if if_ended and found.agent is not None and found.agent.alive:
            return found.agent, f"{found.name} lives; go on with: {way_back(found.session)}"
        said = f"restarted {found.name}{', in a new conversation' if anew else ''}"
        return await _restart(client, found, anew), said

    agent, said = with_client(work)
    if json:
        print_json(agent)
    else:
        print(agent.id if quiet else said)


async def _restart(client: Client, found: SessionMatch, anew: bool) -> Worker:
    if found.worker is None:
        return await client.restart_session(found.session.id, continue_conversation=not anew)
    return await client.restart_worker(found.session.id, found.worker.id, continue_conversation=not anew)
