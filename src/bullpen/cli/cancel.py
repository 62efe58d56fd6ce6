"""`bullpen cancel`: cancel the current turn of an agent."""

import click

from ..client import Client
from .find import SessionMatch, find
from .output import print_json
from .verb import json_option, target_argument, with_client


@click.command()
@target_argument
@json_option
def cancel(target: str, json: bool) -> None:
    """Cancel the turn of an agent; the session goes on.

    \b
    Examples:
      bullpen cancel my-session
    """

    async def work(client: Client) -> SessionMatch:
        found = await find(client, target)
        await client.cancel_turn(found.session.id, found.worker.id if found.worker else None)
        return found

    found = with_client(work)
    cancelled = _was_working(found)
    if json:
        worker_id = found.agent.id if found.agent else None
        print_json({"sessionId": found.session.id, "workerId": worker_id, "cancelled": cancelled})
    else:
        print(f"cancelled the turn of {found.name}" if cancelled else f"{found.name} has no turn to cancel")


def _was_working(found: SessionMatch) -> bool:
    """Return whether the agent was in a turn before it was cancelled."""
    agent = found.agent
    return agent is not None and agent.alive and agent.activity in ("active", "asking")
