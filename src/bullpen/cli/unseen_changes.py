"""What is done and nobody has seen yet, and that somebody has."""

from contextlib import suppress

from ..client import Client
from ..domain.errors import Forbidden


async def find_unseen(client: Client) -> frozenset[str]:
    """The ids of workers whose turn is over and has not been looked at; a delegate is told of none."""
    with suppress(Forbidden):
        return frozenset(item.worker_id for item in await client.inbox() if item.kind == "finished")
    return frozenset()


async def note_seen(client: Client, session_id: str, seq: int) -> None:
    """Whoever sat here has read it up to an event."""
    with suppress(Forbidden):
        await client.mark_seen(session_id, seq)
