"""Create ids, and check ids that come from outside."""

import re
import uuid

_SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}")


def new_id() -> str:
    """Return a new random id for a session, worker, repository or message."""
    return str(uuid.uuid4())


def is_safe_id(text: str) -> bool:
    """Return whether untrusted text can be used as one path segment and one log field."""
    return _SAFE.fullmatch(text) is not None
