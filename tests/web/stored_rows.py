"""Read all rows of a server's database, except those that change without a request."""

import asyncio
import sqlite3
from contextlib import closing
from typing import Any

from support.server import Server

StoredRows = dict[str, list[tuple[Any, ...]]]


async def stored_rows(server: Server) -> StoredRows:
    """Return all rows once two successive reads are equal, so that no write is in progress."""
    async with asyncio.timeout(30):
        previous = _read_tables(server)
        while True:
            await asyncio.sleep(0.1)
            current = _read_tables(server)
            if current == previous:
                return current
            previous = current


def _read_tables(server: Server) -> StoredRows:
    with closing(sqlite3.connect(f"file:{server.home}/bullpen.db?mode=ro", uri=True)) as database:
        tables = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        excluded = ("search_", "sqlite_", "server")  # the row in `server` contains the heartbeat
        names = [name for (name,) in tables if not name.startswith(excluded)]
        return {name: sorted(database.execute(f'SELECT * FROM "{name}"'), key=repr) for name in names}
