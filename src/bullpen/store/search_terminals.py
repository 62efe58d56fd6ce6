"""How far what terminals printed can be found, and making more of it so.

A mark for each worker goes through its runs in order. Of each run the newest text is kept.
"""

from msgspec import Struct
from msgspec.structs import asdict, replace
from sqlalchemy import Connection, delete, or_, select

from ..domain.searching import Document
from ..domain.states import ALIVE
from .search import insert_documents
from .statements import put
from .tables import events, purges, search_documents, search_terminals, sessions, workers

KEPT = 16 << 20  # bytes of a run's output of which the text is kept


class Printing(Struct, frozen=True, kw_only=True):
    """A worker that prints, as far as its recording matters; `alive`: there may be more of its last run."""

    worker_id: str
    session_id: str
    run: int
    alive: bool


class Mark(Struct, frozen=True):
    """What was printed before this offset of this run can be found; `over`: that is all of it."""

    run: int = 1
    offset: int = 0
    over: bool = False


class Printed(Struct, frozen=True):
    """Some of what was printed, and how far it is read then."""

    documents: list[Document]
    mark: Mark


def unfinished(connection: Connection) -> list[Printing]:
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
        Printing(worker_id=row.id, session_id=row.session_id, run=row.run, alive=row.state in ALIVE)
        for row in connection.execute(query)
    ]


def read_mark(connection: Connection, worker_id: str) -> Mark:
    row = connection.execute(
        select(search_terminals).where(search_terminals.c.worker_id == worker_id)
    ).one_or_none()
    return Mark(row.run, row.offset, row.over) if row else Mark()


def add_printed(connection: Connection, printing: Printing, printed: Printed) -> None:
    """With the mark, in one piece; a session that is being purged gets none."""
    session_id, mark = printing.session_id, printed.mark
    known = select(sessions.c.id).where(sessions.c.id == session_id, sessions.c.id.notin_(select(purges)))
    if connection.execute(known).first() is None:
        return
    if printed.documents:
        seq = _seq_at(connection, session_id, printed.documents[0].timestamp)
        insert_documents(connection, session_id, [replace(each, seq=seq) for each in printed.documents])
        _remove_old(connection, printing.worker_id, mark)
    row = {"worker_id": printing.worker_id, "session_id": session_id}
    put(connection, search_terminals, [row | asdict(mark)])


def _seq_at(connection: Connection, session_id: str, timestamp: int) -> int:
    """The last event of a session that was not later than a moment."""
    query = (
        select(events.c.seq)
        .where(events.c.session_id == session_id, events.c.timestamp <= timestamp)
        .order_by(events.c.seq.desc())
        .limit(1)
    )
    return connection.execute(query).scalar() or 1


def _remove_old(connection: Connection, worker_id: str, mark: Mark) -> None:
    document = search_documents.c
    old = (document.worker_id == worker_id, document.run == mark.run, document.offset < mark.offset - KEPT)
    connection.execute(delete(search_documents).where(*old))
