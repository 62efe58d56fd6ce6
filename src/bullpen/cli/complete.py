"""Complete the name of a session for a shell."""

from typing import TYPE_CHECKING

from ..domain.errors import BullpenError

if TYPE_CHECKING:
    from ..client import Client


def sessions(incomplete: str) -> list[tuple[str, str]]:
    """Return active sessions by title, or by id if a title needs quotes; none if no server answers."""
    from .verb import with_client  # noqa: PLC0415  (only completion needs the client)

    try:
        return with_client(lambda client: _candidates(client, incomplete))
    except BullpenError:
        return []


async def _candidates(client: "Client", incomplete: str) -> list[tuple[str, str]]:
    """Return the name and the description of each session whose name begins with a text."""
    from .text import display_state, short, state_label  # noqa: PLC0415

    candidates = []
    for session in await client.sessions(status=("active",)):
        plain = session.title.replace("-", "").replace("_", "").replace(".", "").isalnum()
        candidates.append(
            (
                session.title if plain else short(session.id),
                f"{session.title} · {state_label(display_state(session), session)}",
            )
        )
    return [each for each in candidates if each[0].startswith(incomplete)]
