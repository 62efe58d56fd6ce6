"""All that a server has stored, except the search index and the heartbeat, which go on by themselves."""

import asyncio
import sqlite3
from contextlib import closing
from typing import Any

from support.server import Server

Stored = dict[str, list[tuple[Any, ...]]]


async def stored(server: Server) -> Stored:
    """Two equal looks mean that nothing is under way."""
    async with asyncio.timeout(30):
        seen = _look(server)
        while True:
            await asyncio.sleep(0.1)
            now = _look(server)
            if now == seen:
                return now
            seen = now


def _look(server: Server) -> Stored:
    with closing(sqlite3.connect(f"file:{server.home}/bullpen.db?mode=ro", uri=True)) as database:
        tables = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        followers = ("search_", "sqlite_", "server")  # the row of the server carries its heartbeat
        names = [name for (name,) in tables if not name.startswith(followers)]
        return {name: sorted(database.execute(f'SELECT * FROM "{name}"'), key=repr) for name in names}
