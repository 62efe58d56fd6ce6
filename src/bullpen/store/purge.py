"""Removing a session for good: the only place where events are deleted.

In steps, so that a long session does not hold up the writer. The first step hides the session, and a
purge that a crash cut short is finished at the next start. All of it is tried on a full disk too: what makes
room must not wait for room.
"""

from functools import partial

from sqlalchemy import Connection, delete, select, tuple_

from ..domain.errors import NotFound
from .database import Database
from .statements import put
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

STEP = 5000


async def hide(database: Database, session_id: str) -> None:
    """From now on the session is gone for everybody."""

    def write(connection: Connection) -> None:
        if connection.execute(select(sessions.c.id).where(sessions.c.id == session_id)).first() is None:
            raise NotFound(f"no session {session_id}")
        put(connection, purges, [{"session_id": session_id}])

    await database.write(write, patient=True)


async def purge(database: Database, session_id: str) -> None:
    await hide(database, session_id)
    await remove(database, session_id)


async def hidden(database: Database) -> dict[str, list[str]]:
    """The sessions whose purge was cut short, with the workers of each."""

    def look(connection: Connection) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {id: [] for id in connection.execute(select(purges)).scalars()}
        of_them = select(workers.c.session_id, workers.c.id).where(workers.c.session_id.in_(found))
        for row in connection.execute(of_them):
            found[row.session_id].append(row.id)
        return found

    return await database.read(look)


async def remove(database: Database, session_id: str) -> None:
    """Removes what is hidden already."""
    for step in (_remove_documents, _remove_events):
        while await database.write(partial(step, session_id=session_id), patient=True) == STEP:
            pass
    await database.write(lambda c: _remove_rest(c, session_id), patient=True)


def _remove_documents(connection: Connection, session_id: str) -> int:
    of_session = search_documents.c.session_id == session_id
    some = select(search_documents.c.id).where(of_session).limit(STEP)
    query = delete(search_documents).where(search_documents.c.id.in_(some))
    return connection.execute(query).rowcount


def _remove_events(connection: Connection, session_id: str) -> int:
    key = tuple_(events.c.session_id, events.c.seq)
    some = select(events.c.session_id, events.c.seq).where(events.c.session_id == session_id).limit(STEP)
    return connection.execute(delete(events).where(key.in_(some))).rowcount


def _remove_rest(connection: Connection, session_id: str) -> None:
    of_session = select(workers.c.id).where(workers.c.session_id == session_id)
    for table in (outbox, outbox_heads, consumed):
        connection.execute(delete(table).where(table.c.worker_id.in_(of_session)))
    of_search = (search_documents, search_marks, search_terminals)
    for table in (*of_search, usage, messages, snapshots, unseen, workers, purges):
        connection.execute(delete(table).where(table.c.session_id == session_id))
    connection.execute(delete(settings).where(settings.c.key == IMPORTED + session_id))
    connection.execute(delete(sessions).where(sessions.c.id == session_id))
