"""While another process locks the database, responses name the lock and do not report a full disk."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest

from bullpen import __version__
from support.server import Server


@contextmanager
def locked(server: Server) -> Iterator[None]:
    """Hold the write lock of the server's database for the block."""
    with closing(sqlite3.connect(server.home / "bullpen.db", isolation_level=None, timeout=60)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")


@pytest.mark.intervals(lock_wait=0.5)
async def test_a_locked_database_is_named_and_not_reported_as_a_full_disk(server: Server) -> None:
    with locked(server):
        refused = await server.http.post("/api/sessions", json={"locationPath": str(server.workspace)})
        assert (refused.status_code, refused.json()["error"]) == (503, "unavailable"), refused.text
        assert "the database bullpen.db locked" in refused.json()["message"]
        assert int(refused.headers["Retry-After"]) > 0
        assert await server.call("GET", "/api/health") == {"status": "ok", "version": __version__}
        assert (await server.call("GET", "/api/sessions"))["total"] == 0
    assert (await server.new_session())["status"] == "active"
