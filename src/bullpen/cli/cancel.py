"""`bullpen cancel`: stops what an agent does now."""

from ..client import Client
from .find import find
from .verb import Target, new_app, with_client

app = new_app()


@app.command()
def cancel(target: Target) -> None:
    """Cancel the turn of an agent; the session goes on.

    \b
    Examples:
      bullpen cancel my-session
    """

    async def work(client: Client) -> str:
        found = await find(client, target)
        await client.cancel_turn(found.session.id, found.worker.id if found.worker else None)
        return found.name

    print(f"cancelled the turn of {with_client(work)}")
