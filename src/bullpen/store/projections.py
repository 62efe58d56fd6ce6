"""Compute the rows of sessions, workers and messages from events, and read rows back as values."""

from collections.abc import Iterable, Iterator
from functools import lru_cache
from hashlib import sha256
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import RowMapping

from ..domain.events import Event, WorkerCommand, read_fact
from ..domain.snapshot import Snapshot, Worker
from ..domain.states import Activity, SessionStatus, WorkerState
from ..wire.browser import splice_event
from ..wire.json import encode
from .append import Append, EventEntry
from .conversation_messages import messages_of
from .statements import Values
from .tables import workers

Row = dict[str, Any]


class MessageRows(Struct, frozen=True):
    """Rows of new messages in the column order of `messages`, and new contents of earlier ones by id."""

    new: list[Values]
    changed: list[Row]


class ProjectedRows(Struct, frozen=True):
    """Rows of a projection: some to write completely, others of which only times and numbers changed.

    Both are by id.
    """

    complete: dict[str, Row]
    times_only: dict[str, Row]


def project_sessions(appends: Iterable[Append]) -> ProjectedRows:
    """Return the rows of sessions after the appends. Most events change only times."""
    rows = ProjectedRows({}, {})
    for append in appends:
        before, after = append.before, append.snapshot
        unchanged = all(getattr(before, name) == getattr(after, name) for name in _SESSION_FIELDS)
        if after.id in rows.complete or not unchanged or before.live != after.live or not before.last_seq:
            rows.times_only.pop(after.id, None)
            rows.complete[after.id] = _session_row(after)
        else:
            rows.times_only[after.id] = {
                "id": after.id,
                "updated_at": after.updated_at,
                "last_seq": after.last_seq,
            }
    return rows


# The columns of a session beside its times and numbers.
_SESSION_FIELDS = (
    "type",
    "title",
    "status",
    "end_reason",
    "metadata",
    "repo_id",
    "worktree_id",
    "location_path",
    "on_last_disconnect",
    "started_by",
    "sandbox",
)


def project_workers(appends: Iterable[Append]) -> ProjectedRows:
    """Return the rows of the workers that the appends change."""
    rows = ProjectedRows({}, {})
    for append in appends:
        for position, worker in enumerate(append.snapshot.workers.values()):
            before = append.before.workers.get(worker.id)
            if before is worker:
                continue
            same = before and replace(before, last_active_at=worker.last_active_at)
            if worker.id in rows.complete or same != worker:
                rows.times_only.pop(worker.id, None)
                rows.complete[worker.id] = _worker_row(append.snapshot.id, position, worker)
            else:
                rows.times_only[worker.id] = {"id": worker.id, "last_active_at": worker.last_active_at}
    return rows


def event_rows(append: Append) -> Iterator[Values]:
    """Yield the rows for the events of an append in the column order of `events`."""
    session_id = append.snapshot.id
    for entry in append.entries:
        event = entry.event
        data = entry.data.decode()
        yield session_id, event.seq, event.type, event.worker_id, event.role, event.timestamp, data


def project_messages(appends: Iterable[Append]) -> MessageRows:
    """Return the rows of the messages in the appends. A finished tool call changes its message."""
    rows = MessageRows([], [])
    for append in appends:
        session_id = append.snapshot.id
        prefix = _message_id_prefix(session_id)
        for seq, timestamp, message in messages_of(append):
            content = encode(message.content).decode()
            if message.replaces is None:
                id = f"{prefix}-{seq:012x}"
                rows.new.append((id, session_id, seq, message.role, content, timestamp, None))
            else:
                id = f"{prefix}-{message.replaces:012x}"
                rows.changed.append({"id": id, "content": content, "updated_at": timestamp})
    return rows


@lru_cache(maxsize=1024)
def _message_id_prefix(session_id: str) -> str:
    """Return the beginning of the ids of a session's messages; the event number follows.

    They are UUIDs of version 8, the same at every rebuild. They grow with the log, so that the index inserts
    them in one place; random ids cost more than all the rest of a message.
    """
    digest = sha256(session_id.encode()).hexdigest()
    return f"{digest[:8]}-{digest[8:12]}-8{digest[12:15]}-8{digest[15:18]}"


def read_entry(row: Any) -> EventEntry:
    """Return the event in a row of `events`."""
    data = row.data.encode()
    fact = read_fact(row.type, msgspec.json.decode(data))
    return EventEntry(Event(row.seq, row.timestamp, fact, row.worker_id, row.role), data)


def read_wire(row: Any) -> bytes:
    """Return the JSON of the event in a row of `events`, without parsing its data."""
    return splice_event(row, row.data.encode())


def read_session(row: RowMapping, worker_rows: Iterable[RowMapping]) -> Snapshot:
    """Return the part of a snapshot that is in the rows of a session and its workers."""
    return Snapshot(
        id=row["id"],
        type=row["type"],
        title=row["title"],
        status=SessionStatus(row["status"]),
        end_reason=row["end_reason"],
        metadata=msgspec.json.decode(row["metadata"]),
        repo_id=row["repo_id"],
        worktree_id=row["worktree_id"],
        location_path=row["location_path"],
        on_last_disconnect=row["on_last_disconnect"],
        started_by=row["started_by"],
        sandbox=row["sandbox"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
        last_seq=row["last_seq"],
        workers={worker["id"]: _read_worker(worker) for worker in worker_rows},
    )


def _session_row(snapshot: Snapshot) -> Row:
    """Return the row of a session for its snapshot."""
    return {
        "id": snapshot.id,
        "type": snapshot.type,
        "title": snapshot.title,
        "title_folded": snapshot.title.casefold(),
        "status": snapshot.status.value,
        "end_reason": snapshot.end_reason,
        "metadata": encode(snapshot.metadata).decode(),
        "live": snapshot.live,
        "repo_id": snapshot.repo_id,
        "worktree_id": snapshot.worktree_id,
        "location_path": snapshot.location_path,
        "on_last_disconnect": snapshot.on_last_disconnect,
        "started_by": snapshot.started_by,
        "sandbox": snapshot.sandbox,
        "created_at": snapshot.created_at,
        "updated_at": snapshot.updated_at,
        "last_seq": snapshot.last_seq,
    }


_WORKER_FIELDS = tuple(name for name in Worker.__struct_fields__ if name in workers.c)


def _worker_row(session_id: str, position: int, worker: Worker) -> Row:
    """Return the row of a worker for its snapshot."""
    row = {name: getattr(worker, name) for name in _WORKER_FIELDS}
    return row | {
        "session_id": session_id,
        "position": position,
        "state": worker.state.value,
        "activity": worker.activity.value,
        "owner": worker.owner,
    }


def _read_worker(row: RowMapping) -> Worker:
    """Return the worker in a row of `workers`."""
    fields = {name: row[name] for name in _WORKER_FIELDS}
    fields |= {"state": WorkerState(row["state"]), "activity": Activity(row["activity"])}
    if row["owner"]:
        fields["command"] = WorkerCommand(argv=(), owner=row["owner"])  # the argv is only in the log
    return Worker(**fields)
