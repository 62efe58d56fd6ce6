"""`/api/sessions/{id}/queue`: the messages that wait for an agent."""

from typing import Any

from fastapi import APIRouter, Depends, Request
from msgspec.structs import replace
from starlette.responses import Response

from ...domain.queue import Queue, QueueItem
from ...domain.snapshot import Snapshot
from ...sessions.queue_inheritance import inherited_queue_settings
from ...store.answers import PendingAnswer
from ...wire.browser import iso_time
from ..context import ContextDep
from ..delegates import allow_delegate
from ..errors import own_errors
from ..scopes import Scope, allow, principal_of
from .agent_shapes import (
    MoveShape,
    NewQueueItemShape,
    QueueEditShape,
    QueueItemShape,
    QueueSettingsEditShape,
    QueueSettingsShape,
    QueueShape,
    in_ms,
)
from .answers import IdempotentDep, json_answer

router = APIRouter(prefix="/api/sessions/{session_id}/queue", tags=["queue"])
VIEW = [Depends(allow(Scope.VIEW))]
OPERATE = [Depends(allow(Scope.OPERATE))]


@router.get("", response_model=QueueShape, dependencies=[Depends(allow_delegate(Scope.VIEW))])
async def show(session_id: str, context: ContextDep) -> Response:
    """Return the queue."""
    session = await context.sessions.get(session_id)
    return json_answer(_queue_json(session.snapshot.queue))


@router.post(
    "", status_code=201, response_model=QueueItemShape, responses=own_errors("too_many"), dependencies=OPERATE
)
async def add(
    session_id: str, body: NewQueueItemShape, context: ContextDep, idempotent: IdempotentDep
) -> Response:
    """Queue a message. An idle agent gets it at once; an agent that has ended is restarted."""
    session = await context.sessions.get(session_id)
    answer: PendingAnswer[Snapshot] | None = idempotent.pending_answer(
        201, lambda snapshot: _item_json(snapshot.queue.items[-1])
    )
    item = await session.enqueue(
        body.message,
        body.image_ids,
        body.client_id,
        title=body.title,
        scheduled_time=in_ms(body.scheduled_time),
        answer=answer,
    )
    return json_answer(_item_json(item), 201)


@router.delete("", status_code=204, dependencies=OPERATE)
async def clear(session_id: str, context: ContextDep) -> Response:
    """Remove all queued messages."""
    session = await context.sessions.get(session_id)
    await session.clear_queue()
    return Response(status_code=204)


@router.post("/pause", response_model=QueueShape, dependencies=OPERATE)
async def pause(session_id: str, context: ContextDep, idempotent: IdempotentDep) -> Response:
    """Stop sending queued messages until the queue is resumed."""
    session = await context.sessions.get(session_id)
    await session.pause_queue(idempotent.pending_answer(200, lambda snapshot: _queue_json(snapshot.queue)))
    return json_answer(_queue_json(session.snapshot.queue))


@router.post("/resume", response_model=QueueShape, dependencies=OPERATE)
async def resume(session_id: str, context: ContextDep, idempotent: IdempotentDep) -> Response:
    """Continue to send queued messages."""
    session = await context.sessions.get(session_id)
    await session.resume_queue(idempotent.pending_answer(200, lambda snapshot: _queue_json(snapshot.queue)))
    return json_answer(_queue_json(session.snapshot.queue))


@router.get("/settings", response_model=QueueSettingsShape, dependencies=VIEW)
async def show_settings(session_id: str, context: ContextDep) -> Response:
    """Return the queue settings of the session."""
    session = await context.sessions.get(session_id)
    return json_answer(session.snapshot.queue.settings)


@router.put("/settings", response_model=QueueSettingsShape, dependencies=OPERATE)
async def change_settings(session_id: str, body: QueueSettingsEditShape, context: ContextDep) -> Response:
    """Change the queue settings of the session; omitted fields stay."""
    session = await context.sessions.get(session_id)
    if body.inherited:
        settings = await inherited_queue_settings(session, context.config, context.records)
    else:
        settings = replace(session.snapshot.queue.settings, **body.model_dump(exclude_none=True))
    return json_answer(await session.set_queue_settings(settings))


@router.get("/{message_id}", response_model=QueueItemShape, dependencies=VIEW)
async def show_item(session_id: str, message_id: str, context: ContextDep) -> Response:
    """Return a queued message."""
    session = await context.sessions.get(session_id)
    return json_answer(_item_json(session.snapshot.queue.item(message_id)))


@router.patch("/{message_id}", response_model=QueueItemShape, dependencies=OPERATE)
async def edit(session_id: str, message_id: str, body: QueueEditShape, context: ContextDep) -> Response:
    """Change a queued message; omitted fields stay."""
    session = await context.sessions.get(session_id)
    item = await session.edit_queued(message_id, **body.changes())
    return json_answer(_item_json(item))


@router.delete("/{message_id}", status_code=204, dependencies=OPERATE)
async def remove(session_id: str, message_id: str, context: ContextDep) -> Response:
    """Remove a queued message."""
    session = await context.sessions.get(session_id)
    await session.remove_queued(message_id)
    return Response(status_code=204)


@router.post("/{message_id}/move", response_model=QueueShape, dependencies=OPERATE)
async def move(
    session_id: str, message_id: str, body: MoveShape, context: ContextDep, idempotent: IdempotentDep
) -> Response:
    """Move a message one place up or down; at the end it stays."""
    session = await context.sessions.get(session_id)
    answer: PendingAnswer[Snapshot] | None = idempotent.pending_answer(
        200, lambda snapshot: _queue_json(snapshot.queue)
    )
    await session.move_queued(message_id, body.direction, answer)
    return json_answer(_queue_json(session.snapshot.queue))


@router.post("/{message_id}/send-now", status_code=204, dependencies=OPERATE)
async def send_now(
    session_id: str, message_id: str, request: Request, context: ContextDep, idempotent: IdempotentDep
) -> Response:
    """Send a message next, even if the queue is paused; the current turn is cancelled for it."""
    session = await context.sessions.get(session_id)
    await session.send_now(message_id, principal_of(request).name, idempotent.empty_answer())
    return Response(status_code=204)


def _queue_json(queue: Queue) -> dict[str, Any]:
    """Return a queue with its messages as a JSON object."""
    return {
        "messages": [_item_json(item) for item in queue.items],
        "count": len(queue.items),
        "paused": queue.paused,
    }


def _item_json(item: QueueItem) -> dict[str, Any]:
    """Return a queued message as a JSON object."""
    return {
        "id": item.id,
        "message": item.message,
        "image_ids": item.image_ids,
        "queued_at": iso_time(item.queued_at),
        "client_id": item.client_id,
        "title": item.title,
        "scheduled_time": iso_time(item.scheduled_time) if item.scheduled_time else None,
        "state": item.state,
    }
