"""Copy an SQLite database beside itself, before a change that loses data."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

from sqlalchemy import make_url

from .. import clock


def copy_database(url: str) -> Path | None:
    """Return where the copy is; None if the database is no SQLite file, or does not exist."""
    place = make_url(url)
    if place.get_backend_name() != "sqlite" or not place.database or not os.path.exists(place.database):
        return None
    copy = Path(f"{place.database}.{clock.now_ms()}.copy")
    os.close(os.open(copy, os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    with closing(sqlite3.connect(place.database)) as source, closing(sqlite3.connect(copy)) as target:
        source.backup(target)
    return copy
