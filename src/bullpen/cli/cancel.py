"""`bullpen cancel`: stops what an agent does now."""

from ..client import Client
from .find import SessionMatch, find
from .output import print_json
from .verb import AsJson, Target, new_app, with_client

app = new_app()


@app.command()
def cancel(target: Target, json: AsJson = False) -> None:
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
    cancelled = _was_in_turn(found)
    if json:
        whose = found.agent.id if found.agent else None
        print_json({"sessionId": found.session.id, "workerId": whose, "cancelled": cancelled})
    else:
        print(f"cancelled the turn of {found.name}" if cancelled else f"{found.name} is in no turn")


def _was_in_turn(found: SessionMatch) -> bool:
    """Whether the agent that was told to stop did anything then."""
    agent = found.agent
    return agent is not None and agent.alive and agent.activity in ("active", "asking")
