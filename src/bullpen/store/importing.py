"""Import a session in several transactions; it stays hidden until it is complete.

It is hidden like a session that is being purged, so that the next start removes an import that a crash
interrupted.
"""

import asyncio
from collections.abc import Collection, Iterable

from sqlalchemy import Connection, delete, select

from .. import clock
from ..domain.errors import Conflict
from .append import Append
from .append_group import AppendGroup
from .database import Database
from .purge import remove
from .statements import upsert_rows
from .tables import IMPORTED, purges, repositories, sessions, settings, unseen, workers


async def import_appends(database: Database, session_id: str, appends: Iterable[Append]) -> None:
    """Store the appends of an imported session in order; remove it again if one of them fails."""
    begun = False
    remaining = iter(appends)
    try:
        # In a thread, because it reads and folds events.
        while (append := await asyncio.to_thread(next, remaining, None)) is not None:
            await database.write(lambda c, append=append: _write_append(c, append))  # type: ignore[misc]
            begun = True
        await database.write(lambda c: _reveal(c, session_id))
    except BaseException:
        if begun:
            await remove(database, session_id)
        raise


async def require_new(database: Database, session_id: str, worker_ids: Collection[str]) -> None:
    """Raise Conflict if the session or one of the workers exists, also hidden."""

    def look(connection: Connection) -> bool:
        by_session = select(sessions.c.id).where(sessions.c.id == session_id)
        by_worker = select(workers.c.id).where(workers.c.id.in_(worker_ids))
        return any(connection.execute(query).first() is not None for query in (by_session, by_worker))

    if await database.read(look):
        raise Conflict(f"session {session_id} is here already")


def _write_append(connection: Connection, append: Append) -> None:
    """Write an append of an imported session; the first one creates the session, hidden."""
    snapshot = append.snapshot
    if append.before.last_seq == 0 and snapshot.repo_id is not None:
        _add_removed_repository(connection, snapshot.repo_id)
    (refusal,) = AppendGroup().write(connection, [append])
    if isinstance(refusal, Exception):
        raise refusal
    if append.before.last_seq == 0:
        upsert_rows(connection, purges, [{"session_id": snapshot.id}])
        upsert_rows(connection, settings, [{"key": IMPORTED + snapshot.id, "value": "true"}])


def _add_removed_repository(connection: Connection, repo_id: str) -> None:
    """Add an unknown repository as removed, because events of another machine may refer to it."""
    if connection.execute(select(repositories.c.id).where(repositories.c.id == repo_id)).first() is None:
        now = clock.now_ms()
        row = {"id": repo_id, "path": f"elsewhere/{repo_id}", "name": "elsewhere"}
        upsert_rows(
            connection, repositories, [row | {"created_at": now, "updated_at": now, "removed_at": now}]
        )


def _reveal(connection: Connection, session_id: str) -> None:
    """Make an imported session visible, without inbox items of what happened elsewhere."""
    connection.execute(delete(unseen).where(unseen.c.session_id == session_id))
    connection.execute(delete(purges).where(purges.c.session_id == session_id))
