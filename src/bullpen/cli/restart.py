"""`bullpen restart`: start an agent again, whether it is running or not."""

import click

from ..client import Client, Worker
from .find import SessionMatch, find
from .output import print_json
from .remedies import with_remedies
from .status import return_command
from .verb import json_option, quiet_option, target_argument, with_client


@click.command()
@target_argument
@click.option("--new", "new_conversation", is_flag=True, help="Start a new conversation.")
@click.option("--if-ended", is_flag=True, help="Do nothing if it is running.")
@json_option
@quiet_option
def restart(target: str, new_conversation: bool, if_ended: bool, json: bool, quiet: bool) -> None:
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
        agent = await with_remedies(client, lambda: _restart(client, found, new_conversation))
        return agent, message

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
