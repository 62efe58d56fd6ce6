"""`bullpen restart`: start an agent again, whether it is running or not."""

from typing import Annotated

import typer

from ..client import Client, Worker
from .find import SessionMatch, find
from .output import print_json
from .status import return_command
from .verb import AsJson, Quiet, Target, new_app, with_client

app = new_app()


@app.command()
def restart(
    target: Target,
    new_conversation: Annotated[bool, typer.Option("--new", help="Start a new conversation.")] = False,
    if_ended: Annotated[bool, typer.Option("--if-ended", help="Do nothing if it is running.")] = False,
    json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Restart the first agent of a session, or the agent you name. It continues its conversation.

    \b
    Examples:
      bullpen restart my-session
      bullpen restart my-session/reviewer --new
    """

    async def work(client: Client) -> tuple[Worker, str]:
        found = await find(client, target)
        if if_ended and found.agent is not None and found.agent.alive:
            return found.agent, f"{found.name} is running; continue with: {return_command(found.session)}"
        message = f"restarted {found.name}{', in a new conversation' if new_conversation else ''}"
        return await _restart(client, found, new_conversation), message

    agent, message = with_client(work)
    if json:
        print_json(agent)
    else:
        print(agent.id if quiet else message)


async def _restart(client: Client, found: SessionMatch, new_conversation: bool) -> Worker:
    """Restart the named worker, or the first agent of the session."""
    if found.worker is None:
        return await client.restart_session(found.session.id, continue_conversation=not new_conversation)
    return await client.restart_worker(
        found.session.id, found.worker.id, continue_conversation=not new_conversation
    )
