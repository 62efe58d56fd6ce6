"""A moment somebody types: in the time of this machine, unless it names a zone."""

from datetime import datetime

from ..domain.errors import Invalid


def read_moment(option: str, text: str) -> str:
    """The moment with its zone, as a server elsewhere understands it; `option` is for mistakes."""
    try:
        return datetime.fromisoformat(text).astimezone().isoformat()
    except (ValueError, OverflowError):
        raise Invalid(f"{option} wants a time like 2026-03-01 or 2026-03-01T18:30, not {text}") from None
