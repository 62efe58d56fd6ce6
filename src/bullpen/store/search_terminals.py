"""How far what terminals printed can be found, and making more of it so.

A mark for each worker goes through its runs in order. Of each run the newest text is kept.
"""

from collections.abc import Collection, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict, replace
from sqlalchemy import Connection, delete, or_, select

from ..domain.searching import SearchDocument
from ..domain.states import ALIVE
from .search import insert_documents
from .statements import put
from .tables import events, purges, search_documents, search_terminals, sessions, workers

KEPT = 16 << 20  # bytes of a run's output of which the text is kept


class PrintingWorker(Struct, frozen=True, kw_only=True):
    """A worker that prints, as far as its recording matters; `alive`: there may be more of its last run."""

    worker_id: str
    session_id: str
    run: int
    alive: bool


class IndexedOffset(Struct, frozen=True):
    """What was printed before this offset of this run can be found; `over`: that is all of it."""

    run: int = 1
    offset: int = 0
    over: bool = False


class PrintedText(Struct, frozen=True):
    """Some of what a worker printed, and how far it is read then."""

    printing: PrintingWorker
    documents: list[SearchDocument]
    mark: IndexedOffset


def unfinished(connection: Connection) -> list[PrintingWorker]:
    """The workers that may have printed what cannot be found yet."""
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


def read_marks(connection: Connection, worker_ids: Collection[str]) -> dict[str, IndexedOffset]:
    """Of every one of these workers."""
    query = select(search_terminals).where(search_terminals.c.worker_id.in_(worker_ids))
    marks = {row.worker_id: IndexedOffset(row.run, row.offset, row.over) for row in connection.execute(query)}
    return {worker_id: marks.get(worker_id, IndexedOffset()) for worker_id in worker_ids}


def add_printed(connection: Connection, printed: Sequence[PrintedText]) -> None:
    """With the marks, in one piece; a session that is being purged gets none."""
    printed = _kept(connection, printed)
    for each in printed:
        if each.documents:
            _add_documents(connection, each)
    put(connection, search_terminals, [_row(each) for each in printed])


def _kept(connection: Connection, printed: Sequence[PrintedText]) -> list[PrintedText]:
    wanted = {each.printing.session_id for each in printed}
    query = select(sessions.c.id).where(sessions.c.id.in_(wanted), sessions.c.id.notin_(select(purges)))
    known = set(connection.execute(query).scalars())
    return [each for each in printed if each.printing.session_id in known]


def _add_documents(connection: Connection, printed: PrintedText) -> None:
    session_id = printed.printing.session_id
    seq = _seq_at(connection, session_id, printed.documents[0].timestamp)
    insert_documents(connection, session_id, [replace(each, seq=seq) for each in printed.documents])
    if printed.mark.offset > KEPT:
        _remove_old(connection, printed.printing.worker_id, printed.mark)


def _row(printed: PrintedText) -> dict[str, Any]:
    whose = {"worker_id": printed.printing.worker_id, "session_id": printed.printing.session_id}
    return whose | asdict(printed.mark)


def _seq_at(connection: Connection, session_id: str, timestamp: int) -> int:
    """The last event of a session that was not later than a moment."""
    query = (
        select(events.c.seq)
        .where(events.c.session_id == session_id, events.c.timestamp <= timestamp)
        .order_by(events.c.seq.desc())
        .limit(1)
    )
    return connection.execute(query).scalar() or 1


def _remove_old(connection: Connection, worker_id: str, mark: IndexedOffset) -> None:
    document = search_documents.c
    old = (document.worker_id == worker_id, document.run == mark.run, document.offset < mark.offset - KEPT)
    connection.execute(delete(search_documents).where(*old))
