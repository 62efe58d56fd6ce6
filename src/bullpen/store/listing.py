"""Query pages of the session list, newest first, from projections; a page costs the same at any list size."""

from collections import defaultdict

from msgspec import Struct
from sqlalchemy import ColumnElement, Connection, RowMapping, func, select

from ..domain.snapshot import Snapshot
from .projections import read_session
from .tables import purges, sessions, workers


class SessionFilters(Struct, frozen=True, kw_only=True):
    """The filters of the session list; None does not filter. `q` is a part of the title, in any case."""

    repo_id: str | None = None
    statuses: tuple[str, ...] | None = None
    type: str | None = None
    q: str | None = None
    started_by: str | None = None


class SessionPage(Struct, frozen=True):
    """A page of sessions as their rows tell them, without conversations; and how many sessions match."""

    sessions: list[Snapshot]
    total: int


def read_page(connection: Connection, filters: SessionFilters, limit: int, offset: int) -> SessionPage:
    """Return one page of the sessions that match the filters."""
    conditions = _conditions(filters)
    if hidden := connection.execute(select(purges)).scalars().all():
        conditions.append(sessions.c.id.notin_(hidden))
    total = connection.execute(select(func.count()).select_from(sessions).where(*conditions)).scalar_one()
    # Only ids are sorted and skipped: they are in the index, so the rows need not be read.
    ids = (
        select(sessions.c.id)
        .where(*conditions)
        .order_by(sessions.c.created_at.desc(), sessions.c.id.desc())
        .limit(limit)
        .offset(offset)
    )
    rows = connection.execute(
        select(sessions)
        .where(sessions.c.id.in_(ids))
        .order_by(sessions.c.created_at.desc(), sessions.c.id.desc())
    ).mappings()
    found = rows.all()
    by_session = _workers_by_session(connection, [row["id"] for row in found])
    return SessionPage([read_session(row, by_session[row["id"]]) for row in found], total)


def _conditions(filters: SessionFilters) -> list[ColumnElement[bool]]:
    """Return the SQL conditions of the session filters."""
    conditions: list[ColumnElement[bool]] = []
    if filters.repo_id is not None:
        conditions.append(sessions.c.repo_id == filters.repo_id)
    if filters.statuses is not None:
        conditions.append(sessions.c.status.in_(filters.statuses))
    if filters.type is not None:
        conditions.append(sessions.c.type == filters.type)
    if filters.started_by is not None:
        conditions.append(sessions.c.started_by == filters.started_by)
    if filters.q:
        conditions.append(sessions.c.title_folded.contains(filters.q.casefold(), autoescape=True))
    return conditions


def _workers_by_session(connection: Connection, session_ids: list[str]) -> dict[str, list[RowMapping]]:
    """Return the worker rows of each session."""
    by_session: dict[str, list[RowMapping]] = defaultdict(list)
    query = select(workers).where(workers.c.session_id.in_(session_ids)).order_by(workers.c.position)
    for row in connection.execute(query).mappings():
        by_session[row["session_id"]].append(row)
    return by_session
