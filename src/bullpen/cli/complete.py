"""Complete the name of a session for a shell."""

from typing import TYPE_CHECKING

import click

from ..domain.errors import BullpenError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from ..client import Client


def complete_session(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> "list[CompletionItem[str]]":
    """Return active sessions by title, or by id if a title needs quotes; none if no server answers."""
    from .verb import with_client  # noqa: PLC0415  (only completion needs the client)

    try:
        return with_client(lambda client: _candidates(client, incomplete))
    except BullpenError:
        return []


async def _candidates(client: "Client", incomplete: str) -> "list[CompletionItem[str]]":
    """Return each active session whose name begins with a text, with its state."""
    from click.shell_completion import CompletionItem  # noqa: PLC0415

    from .text import short, shown_state  # noqa: PLC0415

    candidates = []
    for session in await client.sessions(status=("active",)):
        plain = session.title.replace("-", "").replace("_", "").replace(".", "").isalnum()
        name = session.title if plain else short(session.id)
        description = f"{session.title} · {shown_state(session).label}"
        candidates.append(CompletionItem(name, help=description))
    return [each for each in candidates if each.value.startswith(incomplete)]
