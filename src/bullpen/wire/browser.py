"""The JSON of events, sessions, workers and inbox items as REST and the sockets send it."""

from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Protocol

from ..domain.attention import Attention, attention_of
from ..domain.events import Event, read_fact
from ..domain.inbox import InboxItem
from ..domain.snapshot import Snapshot, Worker
from ..domain.states import Activity, panel_status
from .json import encode


def iso_time(ms: int) -> str:
    """Return a time in milliseconds since the epoch as ISO 8601 text in UTC."""
    return f"{_iso_second(ms // 1000)}.{ms % 1000:03d}Z"


@lru_cache(maxsize=1024)
def _iso_second(second: int) -> str:
    """Return a whole second since the epoch as ISO 8601 text without a time zone."""
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def encode_event(event: Event) -> bytes:
    """Return the JSON of an event."""
    return splice_event(event, encode(event.fact.to_data()))


def read_event(wire: dict[str, Any]) -> Event:
    """Return the event in its decoded JSON."""
    timestamp = round(datetime.fromisoformat(wire["timestamp"]).timestamp() * 1000)
    fact = read_fact(wire["type"], wire["data"])
    return Event(wire["seq"], timestamp, fact, wire["workerId"], wire["role"])


class EventHead(Protocol):
    """The fields of an event except its data. Rows of the `events` table have them as well."""

    @property
    def seq(self) -> int: ...
    @property
    def type(self) -> str: ...
    @property
    def worker_id(self) -> str | None: ...
    @property
    def role(self) -> str | None: ...
    @property
    def timestamp(self) -> int: ...


def splice_event(head: EventHead, data: bytes) -> bytes:
    """Return the JSON of an event whose data is JSON already, without parsing it."""
    return b'{"seq":%d,"type":%b,"workerId":%b,"role":%b,"timestamp":"%b","data":%b}' % (
        head.seq,
        _encode_name(head.type),
        _encode_name(head.worker_id),
        _encode_name(head.role),
        iso_time(head.timestamp).encode(),
        data,
    )


@lru_cache(maxsize=4096)
def _encode_name(name: str | None) -> bytes:
    """Return a frequent short text as JSON, from a cache."""
    return encode(name)


def shown_session_json(snapshot: Snapshot, attention: Attention | None = None) -> dict[str, Any]:
    """Return a session with what it needs as a JSON object.

    Without `attention`, it needs what its snapshot says; a snapshot has no unseen results.
    """
    return session_json(snapshot) | {"attention": _attention_json(attention or attention_of(snapshot))}


def session_json(snapshot: Snapshot) -> dict[str, Any]:
    """Return a session with its workers as a JSON object."""
    return {
        "id": snapshot.id,
        "type": snapshot.type,
        "title": snapshot.title,
        "status": snapshot.status.value,
        "agentStatus": agent_status(snapshot.primary),
        "endReason": snapshot.end_reason,
        "metadata": snapshot.metadata,
        "live": snapshot.live,
        "repoId": snapshot.repo_id,
        "worktreeId": snapshot.worktree_id,
        "locationPath": snapshot.location_path,
        "onLastDisconnect": snapshot.on_last_disconnect,
        "startedBy": snapshot.started_by,
        "sandbox": snapshot.sandbox,
        "createdAt": iso_time(snapshot.created_at),
        "updatedAt": iso_time(snapshot.updated_at),
        "lastSeq": snapshot.last_seq,
        "workers": [worker_json(worker, snapshot.id) for worker in snapshot.workers.values()],
    }


def agent_status(worker: Worker | None) -> str:
    """Return the status of a worker in the words of an agent panel; `idle` if there is none."""
    return panel_status(worker.state if worker else None, worker.activity if worker else Activity.UNKNOWN)


def _attention_json(attention: Attention) -> dict[str, str]:
    """Return what a session needs as a JSON object."""
    return {"need": attention.need.value, "why": attention.why, "since": iso_time(attention.since)}


def worker_json(worker: Worker, session_id: str) -> dict[str, Any]:
    """Return a worker as a JSON object."""
    return {
        "id": worker.id,
        "sessionId": session_id,
        "type": worker.type,
        "name": worker.name,
        "role": worker.role,
        "agentId": worker.agent_id,
        "agentKind": worker.agent_kind,
        "workspace": worker.workspace,
        "filePath": worker.file_path,
        "url": worker.url,
        "owner": worker.owner,
        "state": worker.state.value,
        "activity": worker.activity.value,
        "activityWhy": worker.activity_why,
        "activitySince": iso_time(worker.activity_since),
        "status": agent_status(worker),
        "run": worker.run,
        "pid": worker.pid,
        "exitCode": worker.exit_code,
        "signal": worker.signal,
        "error": worker.error,
        "sandbox": worker.sandbox,
        "createdAt": iso_time(worker.created_at),
        "lastActiveAt": iso_time(worker.last_active_at),
    }


def inbox_json(item: InboxItem) -> dict[str, Any]:
    """Return an inbox item as a JSON object."""
    return {
        "id": item.id,
        "kind": item.kind,
        "sessionId": item.session_id,
        "sessionTitle": item.session_title,
        "repoId": item.repo_id,
        "workerId": item.worker_id,
        "role": item.role,
        "agentId": item.agent_id,
        "seq": item.seq,
        "text": item.text,
        "toolCall": item.tool_call,
        "options": item.options,
        "form": item.form,
        "url": item.url,
        "refused": item.refused and {"kind": item.refused[0], "target": item.refused[1]},
        "createdAt": iso_time(item.since),
    }
