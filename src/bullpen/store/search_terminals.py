"""Store the searchable text of terminal output, and how far the output of each worker is indexed.

The index goes through the runs of a worker in order. Of each run the newest text is kept.
"""

from collections.abc import Collection, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict, replace
from sqlalchemy import Connection, delete, or_, select

from ..domain.searching import SearchDocument
from ..domain.states import ALIVE
from .search import insert_documents
from .statements import upsert_rows
from .tables import events, purges, search_documents, search_terminals, sessions, workers

MAX_INDEXED_BYTES = 16 << 20  # of the output of each run; the text of older output is deleted


class PrintingWorker(Struct, frozen=True, kw_only=True):
    """A worker with terminal output. `alive`: its last run may produce more."""

    worker_id: str
    session_id: str
    run: int
    alive: bool


class IndexedOffset(Struct, frozen=True):
    """The output of this run before this offset is indexed. `over`: the run is indexed completely."""

    run: int = 1
    offset: int = 0
    over: bool = False


class PrintedText(Struct, frozen=True):
    """New search documents of a worker's output, and how far it is indexed with them."""

    printing: PrintingWorker
    documents: list[SearchDocument]
    mark: IndexedOffset


def workers_to_index(connection: Connection) -> list[PrintingWorker]:
    """Return the workers with terminal output that is not indexed to its end, or that may still grow."""
    marks = search_terminals.c
    query = (
        select(workers.c.id, workers.c.session_id, workers.c.run, workers.c.state)
        .outerjoin(search_terminals, marks.worker_id == workers.c.id)
        .where(or_(workers.c.type == "terminal", workers.c.agent_kind == "pty"))
        .where(or_(marks.run.is_(None), marks.run < workers.c.run, marks.over.is_(False)))
        .where(workers.c.session_id.notin_(select(purges)))
    )
    return [
        PrintingWorker(worker_id=row.id, session_id=row.session_id, run=row.run, alive=row.state in ALIVE)
        for row in connection.execute(query)
    ]


def read_indexed_offsets(connection: Connection, worker_ids: Collection[str]) -> dict[str, IndexedOffset]:
    """Return how far the terminal output of each worker is indexed."""
    query = select(search_terminals).where(search_terminals.c.worker_id.in_(worker_ids))
    marks = {row.worker_id: IndexedOffset(row.run, row.offset, row.over) for row in connection.execute(query)}
    return {worker_id: marks.get(worker_id, IndexedOffset()) for worker_id in worker_ids}


def add_terminal_text(connection: Connection, printed: Sequence[PrintedText]) -> None:
    """Store search documents of terminal output, unless the session is being purged.

    The indexed offsets are stored with them.
    """
    printed = _of_existing_sessions(connection, printed)
    for each in printed:
        if each.documents:
            _add_documents(connection, each)
    upsert_rows(connection, search_terminals, [_row(each) for each in printed])


def _of_existing_sessions(connection: Connection, printed: Sequence[PrintedText]) -> list[PrintedText]:
    """Return the texts whose session exists and is not being purged."""
    session_ids = {each.printing.session_id for each in printed}
    query = select(sessions.c.id).where(sessions.c.id.in_(session_ids), sessions.c.id.notin_(select(purges)))
    known = set(connection.execute(query).scalars())
    return [each for each in printed if each.printing.session_id in known]


def _add_documents(connection: Connection, printed: PrintedText) -> None:
    """Store search documents of terminal output, and delete those that are too old."""
    session_id = printed.printing.session_id
    seq = _seq_at(connection, session_id, printed.documents[0].timestamp)
    insert_documents(connection, session_id, [replace(each, seq=seq) for each in printed.documents])
    if printed.mark.offset > MAX_INDEXED_BYTES:
        _remove_old(connection, printed.printing.worker_id, printed.mark)


def _row(printed: PrintedText) -> dict[str, Any]:
    """Return the row that says how far a worker's output is indexed."""
    ids = {"worker_id": printed.printing.worker_id, "session_id": printed.printing.session_id}
    return ids | asdict(printed.mark)


def _seq_at(connection: Connection, session_id: str, timestamp: int) -> int:
    """Return the number of a session's last event at or before a time."""
    query = (
        select(events.c.seq)
        .where(events.c.session_id == session_id, events.c.timestamp <= timestamp)
        .order_by(events.c.seq.desc())
        .limit(1)
    )
    return connection.execute(query).scalar() or 1


def _remove_old(connection: Connection, worker_id: str, mark: IndexedOffset) -> None:
    """Delete the search documents of output that is too old to be kept."""
    document = search_documents.c
    old = (
        document.worker_id == worker_id,
        document.run == mark.run,
        document.offset < mark.offset - MAX_INDEXED_BYTES,
    )
    connection.execute(delete(search_documents).where(*old))
