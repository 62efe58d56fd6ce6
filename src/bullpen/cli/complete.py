"""What a shell can offer for the name of a session or worker."""

from typing import TYPE_CHECKING

from ..domain.errors import BullpenError

if TYPE_CHECKING:
    from ..client import Client


def sessions(incomplete: str) -> list[tuple[str, str]]:
    """Running sessions by title, or by id where a title would need quotes; nothing when no server answers."""
    from .verb import with_client  # noqa: PLC0415  (only a shell that completes needs the client)

    try:
        return with_client(lambda client: _offers(client, incomplete))
    except BullpenError:
        return []


async def _offers(client: "Client", incomplete: str) -> list[tuple[str, str]]:
    from .text import label, mood, short  # noqa: PLC0415

    offers = []
    for session in await client.sessions(status=("active",)):
        plain = session.title.replace("-", "").replace("_", "").replace(".", "").isalnum()
        offers.append(
            (
                session.title if plain else short(session.id),
                f"{session.title} · {label(mood(session), session)}",
            )
        )
    return [offer for offer in offers if offer[0].startswith(incomplete)]
