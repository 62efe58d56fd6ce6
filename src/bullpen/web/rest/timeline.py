"""`/api/sessions/{id}/timeline`: times and positions that a replay needs to show any moment of a session."""

import asyncio
from contextlib import closing
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query
from starlette.responses import Response

from ...domain.snapshot import Snapshot
from ...log.recording import Recording
from ...log.timeline import TYPES, TerminalTimeline, find_markers, terminal_timeline
from ...workers.worker_services import WorkerServices
from ..context import ContextDep
from ..numbers import MAX_SAFE_INTEGER
from ..scopes import Scope, allow
from .answers import json_answer
from .shapes import TimelineShape

router = APIRouter(prefix="/api/sessions/{session_id}/timeline", tags=["recordings"])

MAX_RESULTS = 10_000


@router.get("", response_model=TimelineShape, dependencies=[Depends(allow(Scope.VIEW))])
async def timeline(
    session_id: str,
    context: ContextDep,
    at: Annotated[
        int | None, Query(ge=0, le=MAX_SAFE_INTEGER, description="a time in milliseconds since the epoch")
    ] = None,
) -> Response:
    """Return the time line of a session; with `at`, the position of each log at this time."""
    session = await context.sessions.get(session_id)
    snapshot, store = session.snapshot, context.sessions.store
    services = context.sessions.services
    if at is not None:
        seq = await store.seq_at(session_id, at, snapshot.last_seq)
        terminals = await asyncio.to_thread(_offsets, services, snapshot, at)
        return json_answer(_base_json(snapshot) | {"moment": {"seq": seq, "terminals": terminals}})
    events = await store.events(session_id, before=snapshot.last_seq + 1, limit=MAX_RESULTS + 1, types=TYPES)
    timelines = await asyncio.to_thread(_terminal_timelines, services, snapshot)
    return json_answer(
        _base_json(snapshot)
        | {
            "markers": find_markers(event for event, _ in events[:MAX_RESULTS]),
            "truncated": len(events) > MAX_RESULTS,
            "terminals": timelines,
        }
    )


def _base_json(snapshot: Snapshot) -> dict[str, Any]:
    """Return the fields that both answers have."""
    base = {"begins": snapshot.created_at, "ends": snapshot.updated_at, "head": snapshot.last_seq}
    return base | {"markers": [], "truncated": False, "terminals": [], "moment": None}


def _runs(services: WorkerServices, snapshot: Snapshot) -> list[tuple[str, int, Recording]]:
    """Return all recorded runs of terminals, each with its open recording."""
    return [
        (worker.id, run, Recording(services.children.spool(worker.id, run)))
        for worker in snapshot.workers.values()
        if worker.type == "terminal" or worker.agent_kind == "pty"
        for run in range(1, worker.run + 1)
    ]


def _terminal_timelines(services: WorkerServices, snapshot: Snapshot) -> list[TerminalTimeline]:
    """Return the time line of each recorded run."""
    found = []
    for worker_id, run, recording in _runs(services, snapshot):
        with closing(recording):
            found.append(terminal_timeline(worker_id, run, recording))
    return found


def _offsets(services: WorkerServices, snapshot: Snapshot, at: int) -> list[dict[str, Any]]:
    """Return the offset of each recorded run at a time."""
    found = []
    for worker_id, run, recording in _runs(services, snapshot):
        with closing(recording):
            offset = recording.offset_at((at + 1) * 1_000_000)
            found.append({"workerId": worker_id, "run": run, "offset": offset})
    return found
