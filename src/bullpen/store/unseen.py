"""What happened while nobody looked: a projection of the log, a row for a worker that failed or ended a turn.

A row goes when the worker begins anew or is ended by somebody, and when a person has seen the session so
far; not when the session ends because nobody did anything.
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
from .statements import put
from .tables import purges, sessions, unseen, workers

Row = dict[str, Any]

# Facts that change what waits to be seen; most say something else.
_TELLING = frozenset(
    {SessionEnd, WorkerSpawning, WorkerTerminated, WorkerFailed, WorkerActivity, TurnStart, TurnEnd}
)

SHOWN = 500  # the newest; a house that far behind has other worries


def write_unseen(connection: Connection, appends: Iterable[Append]) -> None:
    """In the transaction of the events."""
    changes: dict[str, Row | None] = {}
    for append in appends:
        for event in [entry.event for entry in append.entries if type(entry.event.fact) in _TELLING]:
            changes |= _changes(append, event)
    put(connection, unseen, [row for row in changes.values() if row])
    _remove(connection, [worker_id for worker_id, row in changes.items() if row is None])


def read_unseen(connection: Connection) -> list[InboxItem]:
    query = (
        select(unseen, sessions.c.title, sessions.c.repo_id, workers.c.role, workers.c.agent_id)
        .join(sessions, sessions.c.id == unseen.c.session_id)
        .join(workers, workers.c.id == unseen.c.worker_id)
        .where(unseen.c.session_id.notin_(select(purges)))
        .order_by(unseen.c.timestamp.desc())
        .limit(SHOWN)
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
    """A person has seen a session, up to an event or all there is."""
    known = select(sessions.c.id).where(sessions.c.id == session_id, sessions.c.id.notin_(select(purges)))
    if connection.execute(known).first() is None:
        raise NotFound(f"no session {session_id}")
    query = delete(unseen).where(unseen.c.session_id == session_id)
    connection.execute(query if seq is None else query.where(unseen.c.seq <= seq))


def _changes(append: Append, event: Event) -> dict[str, Row | None]:
    match event.fact:
        case SessionEnd(reason=commands.IDLE) | WorkerTerminated(reason=commands.IDLE):
            return {}  # nobody wanted it so: what nobody has seen still waits
        case SessionEnd() as fact if fact.status != SessionStatus.ERROR:
            return dict.fromkeys(append.snapshot.workers)  # somebody wanted it so
        case fact if event.worker_id is None:
            return {}
        case WorkerSpawning() | WorkerTerminated() | TurnStart():
            return {event.worker_id: None}
        case WorkerActivity(by_hand=True, activity=Activity.ACTIVE):
            return {event.worker_id: None}
        case fact:
            found = _found(fact)
            return {event.worker_id: _row(append.snapshot.id, event, *found)} if found else {}


def _found(fact: Fact) -> tuple[str, str] | None:
    """What of a fact a person should see, and in which words."""
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
    return {
        "worker_id": event.worker_id,
        "session_id": session_id,
        "kind": kind,
        "seq": event.seq,
        "timestamp": event.timestamp,
        "detail": detail,
    }


def _remove(connection: Connection, worker_ids: Sequence[str]) -> None:
    if worker_ids:
        connection.execute(delete(unseen).where(unseen.c.worker_id.in_(worker_ids)))
