"""/api/sessions/{id}/timeline: what a scrubber needs to show any moment of a session."""

import asyncio
from contextlib import closing
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query
from starlette.responses import Response

from ...domain.snapshot import Snapshot
from ...log.recording import Recording
from ...log.timeline import TYPES, TerminalLine, find_markers, terminal_timeline
from ...workers.worker_services import WorkerServices
from ..context import ContextDep
from ..numbers import LARGEST
from ..scopes import Scope, allow
from .answers import json_answer
from .shapes import TimelineShape

router = APIRouter(prefix="/api/sessions/{session_id}/timeline", tags=["recordings"])

MOST = 10_000


@router.get("", response_model=TimelineShape, dependencies=[Depends(allow(Scope.VIEW))])
async def timeline(
    session_id: str,
    context: ContextDep,
    at: Annotated[
        int | None, Query(ge=0, le=LARGEST, description="a moment, in milliseconds since the epoch")
    ] = None,
) -> Response:
    session = await context.sessions.get(session_id)
    snapshot, store = session.snapshot, context.sessions.store
    services = context.sessions.services
    if at is not None:
        seq = await store.seq_at(session_id, at, snapshot.last_seq)
        terminals = await asyncio.to_thread(_offsets, services, snapshot, at)
        return json_answer(_told(snapshot) | {"moment": {"seq": seq, "terminals": terminals}})
    events = await store.events(session_id, before=snapshot.last_seq + 1, limit=MOST + 1, types=TYPES)
    lines = await asyncio.to_thread(_lines, services, snapshot)
    return json_answer(
        _told(snapshot)
        | {
            "markers": find_markers(event for event, _ in events[:MOST]),
            "truncated": len(events) > MOST,
            "terminals": lines,
        }
    )


def _told(snapshot: Snapshot) -> dict[str, Any]:
    base = {"begins": snapshot.created_at, "ends": snapshot.updated_at, "head": snapshot.last_seq}
    return base | {"markers": [], "truncated": False, "terminals": [], "moment": None}


def _runs(services: WorkerServices, snapshot: Snapshot) -> list[tuple[str, int, Recording]]:
    return [
        (worker.id, run, Recording(services.children.spool(worker.id, run)))
        for worker in snapshot.workers.values()
        if worker.type == "terminal" or worker.agent_kind == "pty"
        for run in range(1, worker.run + 1)
    ]


def _lines(services: WorkerServices, snapshot: Snapshot) -> list[TerminalLine]:
    found = []
    for worker_id, run, recording in _runs(services, snapshot):
        with closing(recording):
            found.append(terminal_timeline(worker_id, run, recording))
    return found


def _offsets(services: WorkerServices, snapshot: Snapshot, at: int) -> list[dict[str, Any]]:
    found = []
    for worker_id, run, recording in _runs(services, snapshot):
        with closing(recording):
            offset = recording.offset_at((at + 1) * 1_000_000)
            found.append({"workerId": worker_id, "run": run, "offset": offset})
    return found
