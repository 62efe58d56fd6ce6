"""Delete a session for good; the only place where events are deleted.

A purge runs in steps, so that a long session does not block the writer. The first step hides the session, and
the next start finishes a purge that a crash interrupted. It is also tried on a full disk, because it frees
space.
"""

from functools import partial

from sqlalchemy import Connection, delete, select, tuple_

from ..domain.errors import NotFound
from .database import Database
from .statements import upsert_rows
from .tables import (
    IMPORTED,
    consumed,
    events,
    messages,
    outbox,
    outbox_heads,
    purges,
    search_documents,
    search_marks,
    search_terminals,
    sessions,
    settings,
    snapshots,
    unseen,
    usage,
    workers,
)

ROWS_PER_STEP = 5000


async def hide(database: Database, session_id: str) -> None:
    """Hide a session from all readers, or raise NotFound."""

    def write(connection: Connection) -> None:
        if connection.execute(select(sessions.c.id).where(sessions.c.id == session_id)).first() is None:
            raise NotFound(f"no session {session_id}")
        upsert_rows(connection, purges, [{"session_id": session_id}])

    await database.write(write, patient=True)


async def purge(database: Database, session_id: str) -> None:
    """Hide and delete a session."""
    await hide(database, session_id)
    await remove(database, session_id)


async def unfinished_purges(database: Database) -> dict[str, list[str]]:
    """Return the sessions whose purge was interrupted, each with its worker ids."""

    def look(connection: Connection) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {id: [] for id in connection.execute(select(purges)).scalars()}
        of_them = select(workers.c.session_id, workers.c.id).where(workers.c.session_id.in_(found))
        for row in connection.execute(of_them):
            found[row.session_id].append(row.id)
        return found

    return await database.read(look)


async def remove(database: Database, session_id: str) -> None:
    """Delete a session that is hidden already."""
    for step in (_remove_documents, _remove_events):
        while await database.write(partial(step, session_id=session_id), patient=True) == ROWS_PER_STEP:
            pass
    await database.write(lambda c: _remove_small_tables(c, session_id), patient=True)


def _remove_documents(connection: Connection, session_id: str) -> int:
    """Delete some search documents of a session; return how many."""
    of_session = search_documents.c.session_id == session_id
    some = select(search_documents.c.id).where(of_session).limit(ROWS_PER_STEP)
    query = delete(search_documents).where(search_documents.c.id.in_(some))
    return connection.execute(query).rowcount


def _remove_events(connection: Connection, session_id: str) -> int:
    """Delete some events of a session; return how many."""
    key = tuple_(events.c.session_id, events.c.seq)
    some = (
        select(events.c.session_id, events.c.seq)
        .where(events.c.session_id == session_id)
        .limit(ROWS_PER_STEP)
    )
    return connection.execute(delete(events).where(key.in_(some))).rowcount


def _remove_small_tables(connection: Connection, session_id: str) -> None:
    """Delete the rows of a session from all tables that have few of them, the session itself last."""
    of_session = select(workers.c.id).where(workers.c.session_id == session_id)
    for table in (outbox, outbox_heads, consumed):
        connection.execute(delete(table).where(table.c.worker_id.in_(of_session)))
    of_search = (search_documents, search_marks, search_terminals)
    for table in (*of_search, usage, messages, snapshots, unseen, workers, purges):
        connection.execute(delete(table).where(table.c.session_id == session_id))
    connection.execute(delete(settings).where(settings.c.key == IMPORTED + session_id))
    connection.execute(delete(sessions).where(sessions.c.id == session_id))
