"""Full-text search over all sessions, newest first: FTS5 on SQLite, tsvector on PostgreSQL."""

import re
from collections.abc import Sequence
from typing import Any

from msgspec import Struct, structs
from sqlalchemy import (
    ColumnElement,
    Connection,
    FromClause,
    Select,
    column,
    func,
    literal_column,
    select,
    table,
)
from sqlalchemy import text as sql

from ..domain.errors import Invalid
from ..domain.searching import DocumentBatch, SearchDocument, read_documents
from .projections import read_entry
from .statements import upsert_rows
from .tables import events, purges, search_documents, search_marks, sessions, workers

BATCH_EVENTS = 1000
SNIPPET_CONTEXT = 80  # characters of a snippet on each side of the match

_ADD = """INSERT INTO search_documents
    (session_id, seq, worker_id, type, role, timestamp, text, run, "offset")
    VALUES (:session_id, :seq, :worker_id, :type, :role, :timestamp, :text, :run, :offset)
    ON CONFLICT DO NOTHING"""


class SearchFilters(Struct, frozen=True, kw_only=True):
    """Where to search; None does not filter. Times are milliseconds since the epoch."""

    repo_id: str | None = None
    agent_id: str | None = None
    session_id: str | None = None
    role: str | None = None
    type: str | None = None
    after: int | None = None
    before: int | None = None


class SearchHit(Struct, frozen=True, kw_only=True):
    """A document that matches, with its place in a session and a snippet."""

    session_id: str
    session_title: str
    repo_id: str | None
    worker_id: str | None
    agent_id: str | None
    seq: int
    type: str
    role: str
    timestamp: int
    run: int | None  # of a terminal, with the offset in its recording
    offset: int | None
    snippet: str


def search(connection: Connection, q: str, filters: SearchFilters, limit: int) -> list[SearchHit]:
    """Return the newest search documents that contain all words of `q`, without those of hidden sessions.

    Raise Invalid if `q` has no word.
    """
    words = re.findall(r"\w+", q)
    if not words:
        raise Invalid("search for at least one word")
    newest = _select_matching(connection.dialect.name, words)
    query = newest.where(*_conditions(filters)).limit(limit)
    if hidden := connection.execute(select(purges)).scalars().all():
        query = query.where(search_documents.c.session_id.notin_(hidden))
    return [_hit(row, words) for row in connection.execute(query)]


def sessions_to_index(connection: Connection) -> list[str]:
    """Return the ids of sessions with events that are not indexed yet, the oldest first."""
    query = (
        select(sessions.c.id)
        .outerjoin(search_marks, search_marks.c.session_id == sessions.c.id)
        .where(func.coalesce(search_marks.c.seq, 0) < sessions.c.last_seq)
        .where(sessions.c.id.notin_(select(purges)))
        .order_by(sessions.c.updated_at)
    )
    return list(connection.execute(query).scalars())


def read_next(connection: Connection, session_id: str) -> tuple[int, DocumentBatch]:
    """Return the search documents in a session's next events, and the event after which they begin."""
    mark = select(search_marks.c.seq).where(search_marks.c.session_id == session_id)
    after = connection.execute(mark).scalar() or 0
    query = select(events).where(events.c.session_id == session_id, events.c.seq > after)
    rows = connection.execute(query.order_by(events.c.seq).limit(BATCH_EVENTS)).all()
    if not rows:
        return after, DocumentBatch([], after)
    found = [read_entry(row).event for row in rows]
    batch = read_documents(found)
    if batch.until == after and len(rows) == BATCH_EVENTS:  # a message without an end must not block the rest
        batch = read_documents(found, flush=True)
    return after, batch


def add_documents(connection: Connection, session_id: str, batch: DocumentBatch) -> None:
    """Store search documents and how far the log is indexed, unless the session is being purged."""
    existing = select(sessions.c.id).where(sessions.c.id == session_id, sessions.c.id.notin_(select(purges)))
    if connection.execute(existing).first() is None:
        return
    insert_documents(connection, session_id, batch.documents)
    upsert_rows(connection, search_marks, [{"session_id": session_id, "seq": batch.until}])


def insert_documents(connection: Connection, session_id: str, documents: Sequence[SearchDocument]) -> None:
    """Store search documents; one that is stored already is ignored."""
    if documents:
        connection.execute(sql(_ADD), [_row(session_id, each) for each in documents])


def _row(session_id: str, document: SearchDocument) -> dict[str, Any]:
    """Return the row of a search document."""
    return {"session_id": session_id} | structs.asdict(document)


def _select_matching(dialect: str, words: list[str]) -> Select[Any]:
    """Return the query for the documents with all words, newest first, with session and worker."""
    shown = (
        search_documents,
        sessions.c.title.label("session_title"),
        sessions.c.repo_id,
        workers.c.agent_id,
    )
    documents = search_documents
    if dialect == "sqlite":
        # In this order the word index is read backwards, and stops when enough rows are found.
        index = table("search_words", column("rowid"))
        order: ColumnElement[Any] = index.c.rowid
        source: FromClause = index.join(documents, documents.c.id == index.c.rowid)
        match = literal_column("search_words").op("MATCH")(" ".join(f'"{word}"' for word in words))
    else:
        order = documents.c.id
        source = documents
        wanted = func.plainto_tsquery("simple", " ".join(words))
        match = func.to_tsvector(literal_column("'simple'"), documents.c.text).op("@@")(wanted)
    source = source.join(sessions, sessions.c.id == documents.c.session_id)
    source = source.outerjoin(workers, workers.c.id == documents.c.worker_id)
    return select(*shown).select_from(source).where(match).order_by(order.desc())


def _conditions(filters: SearchFilters) -> list[ColumnElement[bool]]:
    """Return the SQL conditions of the search filters."""
    documents = search_documents.c
    equal = (
        (sessions.c.repo_id, filters.repo_id),
        (workers.c.agent_id, filters.agent_id),
        (documents.session_id, filters.session_id),
        (documents.role, filters.role),
        (documents.type, filters.type),
    )
    conditions = [named == value for named, value in equal if value is not None]
    if filters.after is not None:
        conditions.append(documents.timestamp > filters.after)
    if filters.before is not None:
        conditions.append(documents.timestamp < filters.before)
    return conditions


def _hit(row: Any, words: list[str]) -> SearchHit:
    """Return the search hit in a row, with a snippet."""
    fields = {name: getattr(row, name) for name in SearchHit.__struct_fields__ if name != "snippet"}
    return SearchHit(**fields, snippet=snippet(row.text, words))


def snippet(text: str, words: list[str]) -> str:
    """Return the text around the first match of a search word, on one line."""
    places = [match.start() for word in words if (match := re.search(re.escape(word), text, re.IGNORECASE))]
    place = min(places, default=0)
    start, end = max(0, place - SNIPPET_CONTEXT), place + SNIPPET_CONTEXT
    cut = " ".join(text[start:end].split())
    return f"{'…' if start else ''}{cut}{'…' if end < len(text) else ''}"
