"""The projection of unseen results: a row for each worker that failed or ended a turn and was not looked at.

A row is deleted when the worker begins new work, when a user ends it, and when a user has seen the session.
It stays when the session ends because it was idle.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Connection, delete, select

from ..domain import commands
from ..domain.conversation import TurnEnd, TurnStart
from ..domain.errors import NotFound
from ..domain.events import (
    Event,
    Fact,
    SessionEnd,
    WorkerActivity,
    WorkerFailed,
    WorkerSpawning,
    WorkerTerminated,
)
from ..domain.inbox import InboxItem
from ..domain.states import Activity, SessionStatus
from .append import Append
from .statements import upsert_rows
from .tables import purges, sessions, unseen, workers

Row = dict[str, Any]

# The facts that change these rows.
_RELEVANT_FACTS = frozenset(
    {SessionEnd, WorkerSpawning, WorkerTerminated, WorkerFailed, WorkerActivity, TurnStart, TurnEnd}
)

MAX_SHOWN = 500  # the newest


def write_unseen(connection: Connection, appends: Iterable[Append]) -> None:
    """Update the table of unseen results, in the transaction of the events."""
    changes: dict[str, Row | None] = {}
    for append in appends:
        for event in [entry.event for entry in append.entries if type(entry.event.fact) in _RELEVANT_FACTS]:
            changes |= _changes(append, event)
    upsert_rows(connection, unseen, [row for row in changes.values() if row])
    _remove(connection, [worker_id for worker_id, row in changes.items() if row is None])


def read_unseen(connection: Connection) -> list[InboxItem]:
    """Return the unseen results as inbox items, the newest first."""
    query = (
        select(unseen, sessions.c.title, sessions.c.repo_id, workers.c.role, workers.c.agent_id)
        .join(sessions, sessions.c.id == unseen.c.session_id)
        .join(workers, workers.c.id == unseen.c.worker_id)
        .where(unseen.c.session_id.notin_(select(purges)))
        .order_by(unseen.c.timestamp.desc())
        .limit(MAX_SHOWN)
    )
    return [
        InboxItem(
            id=f"{row.session_id}.{row.seq}",
            kind=row.kind,
            session_id=row.session_id,
            session_title=row.title,
            repo_id=row.repo_id,
            worker_id=row.worker_id,
            role=row.role,
            agent_id=row.agent_id,
            since=row.timestamp,
            seq=row.seq,
            text=row.detail,
        )
        for row in connection.execute(query)
    ]


def mark_seen(connection: Connection, session_id: str, seq: int | None) -> None:
    """Delete the unseen results of a session, up to event `seq` if given, or raise NotFound."""
    known = select(sessions.c.id).where(sessions.c.id == session_id, sessions.c.id.notin_(select(purges)))
    if connection.execute(known).first() is None:
        raise NotFound(f"no session {session_id}")
    query = delete(unseen).where(unseen.c.session_id == session_id)
    connection.execute(query if seq is None else query.where(unseen.c.seq <= seq))


def _changes(append: Append, event: Event) -> dict[str, Row | None]:
    """Return, for each worker an event concerns, its new row of unseen results, or None to delete it."""
    match event.fact:
        case SessionEnd(reason=commands.IDLE) | WorkerTerminated(reason=commands.IDLE):
            return {}  # ended without a user, so unseen results remain
        case SessionEnd() as fact if fact.status != SessionStatus.ERROR:
            return dict.fromkeys(append.snapshot.workers)  # ended by a user
        case fact if event.worker_id is None:
            return {}
        case WorkerSpawning() | WorkerTerminated() | TurnStart():
            return {event.worker_id: None}
        case WorkerActivity(by_hand=True, activity=Activity.ACTIVE):
            return {event.worker_id: None}
        case fact:
            result = _kind_and_detail(fact)
            return {event.worker_id: _row(append.snapshot.id, event, *result)} if result else {}


def _kind_and_detail(fact: Fact) -> tuple[str, str] | None:
    """Return kind and text of a result that a user should see; None for any other fact."""
    match fact:
        case WorkerFailed():
            return "failed", fact.error
        case TurnEnd() if fact.failure:
            return "failed", fact.failure
        case TurnEnd() if fact.stop_reason != "cancelled":
            return "finished", fact.stop_reason
        case WorkerActivity(by_hand=True, activity=Activity.IDLE):
            return "finished", "end_turn"
        case _:
            return None


def _row(session_id: str, event: Event, kind: str, detail: str) -> Row:
    """Return the row of a result that no user has seen."""
    return {
        "worker_id": event.worker_id,
        "session_id": session_id,
        "kind": kind,
        "seq": event.seq,
        "timestamp": event.timestamp,
        "detail": detail,
    }


def _remove(connection: Connection, worker_ids: Sequence[str]) -> None:
    """Delete the unseen results of some workers."""
    if worker_ids:
        connection.execute(delete(unseen).where(unseen.c.worker_id.in_(worker_ids)))
