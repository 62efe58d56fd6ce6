"""The rows that follow from events and snapshots, and the way back."""

import uuid
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import RowMapping

from ..domain.events import Event, read_fact
from ..domain.snapshot import Snapshot, Worker
from ..domain.states import Activity, State, Status
from ..wire.browser import splice_event
from ..wire.json import encode
from .append import Append, Entry
from .conversation_messages import messages_of
from .tables import workers

Row = dict[str, Any]


class Projected(Struct, frozen=True):
    """Rows to write whole, and rows of which only the times and numbers moved on, by id."""

    whole: dict[str, Row]
    moved: dict[str, Row]


def project_sessions(appends: Iterable[Append]) -> Projected:
    """One row for each session: as most events say nothing about it, mostly a small one."""
    rows = Projected({}, {})
    for append in appends:
        before, after = append.before, append.snapshot
        still = all(getattr(before, name) == getattr(after, name) for name in _SESSION_FIELDS)
        if after.id in rows.whole or not still or before.live != after.live or not before.last_seq:
            rows.moved.pop(after.id, None)
            rows.whole[after.id] = _session_row(after)
        else:
            rows.moved[after.id] = {
                "id": after.id,
                "updated_at": after.updated_at,
                "last_seq": after.last_seq,
            }
    return rows


# What a row of a session shows beside its times and numbers.
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
)


def project_workers(appends: Iterable[Append]) -> Projected:
    """One row for each worker that is not what it was."""
    rows = Projected({}, {})
    for append in appends:
        for position, worker in enumerate(append.snapshot.workers.values()):
            before = append.before.workers.get(worker.id)
            if before is worker:
                continue
            still = before and replace(before, last_active_at=worker.last_active_at)
            if worker.id in rows.whole or still != worker:
                rows.moved.pop(worker.id, None)
                rows.whole[worker.id] = _worker_row(append.snapshot.id, position, worker)
            else:
                rows.moved[worker.id] = {"id": worker.id, "last_active_at": worker.last_active_at}
    return rows


def event_rows(append: Append) -> Iterator[Row]:
    session_id = append.snapshot.id
    for entry in append.entries:
        event = entry.event
        yield {
            "session_id": session_id,
            "seq": event.seq,
            "type": event.type,
            "worker_id": event.worker_id,
            "role": event.role,
            "timestamp": event.timestamp,
            "data": entry.data.decode(),
        }


def message_rows(append: Append) -> Iterator[Row]:
    """What the conversation shows of the events."""
    session_id = append.snapshot.id
    for seq, timestamp, message in messages_of(append):
        yield {
            # The same at every rebuild, because it is made from what never changes.
            "id": str(uuid.uuid5(uuid.NAMESPACE_OID, f"{session_id}/{seq}")),
            "session_id": session_id,
            "seq": seq,
            "role": message.role,
            "content": encode(message.content).decode(),
            "timestamp": timestamp,
        }


def read_entry(row: Any) -> Entry:
    """The entry a row of `events` was made of."""
    data = row.data.encode()
    fact = read_fact(row.type, msgspec.json.decode(data))
    return Entry(Event(row.seq, row.timestamp, fact, row.worker_id, row.role), data)


def read_wire(row: Any) -> bytes:
    """The same, as it goes to a client, without looking inside."""
    return splice_event(row, row.data.encode())


def read_session(row: RowMapping, worker_rows: Iterable[RowMapping]) -> Snapshot:
    """As much of a snapshot as the rows hold: what lists show."""
    return Snapshot(
        id=row["id"],
        type=row["type"],
        title=row["title"],
        status=Status(row["status"]),
        end_reason=row["end_reason"],
        metadata=msgspec.json.decode(row["metadata"]),
        repo_id=row["repo_id"],
        worktree_id=row["worktree_id"],
        location_path=row["location_path"],
        on_last_disconnect=row["on_last_disconnect"],
        started_by=row["started_by"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
        last_seq=row["last_seq"],
        workers={worker["id"]: _read_worker(worker) for worker in worker_rows},
    )


def _session_row(snapshot: Snapshot) -> Row:
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
        "created_at": snapshot.created_at,
        "updated_at": snapshot.updated_at,
        "last_seq": snapshot.last_seq,
    }


_WORKER_FIELDS = tuple(name for name in Worker.__struct_fields__ if name in workers.c)


def _worker_row(session_id: str, position: int, worker: Worker) -> Row:
    row = {name: getattr(worker, name) for name in _WORKER_FIELDS}
    return row | {
        "session_id": session_id,
        "position": position,
        "state": worker.state.value,
        "activity": worker.activity.value,
    }


def _read_worker(row: RowMapping) -> Worker:
    fields = {name: row[name] for name in _WORKER_FIELDS}
    fields |= {"state": State(row["state"]), "activity": Activity(row["activity"])}
    return Worker(**fields)
