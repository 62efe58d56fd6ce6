"""Find the finished turns that the user has not seen, and mark turns as seen."""

from contextlib import suppress

from ..client import Client
from ..domain.errors import Forbidden


async def find_unseen(client: Client) -> frozenset[str]:
    """Return the ids of workers with an ended turn that was not seen; none for a delegate token."""
    with suppress(Forbidden):
        return frozenset(item.worker_id for item in await client.inbox() if item.kind == "finished")
    return frozenset()


async def note_seen(client: Client, session_id: str, seq: int) -> None:
    """Mark a session as seen up to an event, if the token allows it."""
    with suppress(Forbidden):
        await client.mark_seen(session_id, seq)
