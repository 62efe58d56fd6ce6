"""Parse a time of the command line, which is local unless it has a time zone."""

from datetime import datetime

from ..domain.errors import Invalid


def parse_time_option(option: str, text: str) -> str:
    """Return a time in ISO format with its zone, or raise Invalid with the name of the option."""
    try:
        return datetime.fromisoformat(text).astimezone().isoformat()
    except (ValueError, OverflowError):
        raise Invalid(f"{option} needs a time like 2026-03-01 or 2026-03-01T18:30, not {text}") from None
