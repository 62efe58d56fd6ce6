"""Find the sessions that the program agent-console has saved in the home directory of the user."""

import json
import os
from pathlib import Path
from typing import Any

import structlog
from msgspec import Struct

log = structlog.get_logger()

FILE = ".agent-console/sessions.json"
MAX_FILE_BYTES = 1 << 20  # as much as a request may contain


class SavedSessionsFile(Struct, frozen=True, kw_only=True):
    """A `sessions.json` that agent-console has written; `sessions` are its entries."""

    path: str
    sessions: list[Any]


def find_saved_sessions() -> SavedSessionsFile | None:
    """Return the file in the home directory, or None without one that contains a session."""
    path = Path(os.environ.get("HOME", "/")) / FILE
    try:
        with open(path, "rb") as file:
            entries = json.loads(file.read(MAX_FILE_BYTES))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as error:
        log.warning("the sessions of agent-console cannot be read", path=str(path), reason=str(error))
        return None
    return (
        SavedSessionsFile(path=str(path), sessions=entries) if isinstance(entries, list) and entries else None
    )
