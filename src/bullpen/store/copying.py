"""Copy an SQLite database beside itself, before a change that loses data."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

from sqlalchemy import make_url

from .. import clock


def copy_database(url: str) -> Path | None:
    """Copy an SQLite database; return the path of the copy, or None if there is no such file."""
    parts = make_url(url)
    if parts.get_backend_name() != "sqlite" or not parts.database or not os.path.exists(parts.database):
        return None
    copy = Path(f"{parts.database}.{clock.now_ms()}.copy")
    os.close(os.open(copy, os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    with closing(sqlite3.connect(parts.database)) as source, closing(sqlite3.connect(copy)) as target:
        source.backup(target)
    return copy
