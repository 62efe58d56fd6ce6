"""`/api/sessions/{id}/images`: upload images for prompts, and read them."""

import asyncio
from typing import Any

from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from ...domain.commands import require_active
from ...store.answers import PendingAnswer
from ...workers.images import Image
from ..context import ContextDep
from ..errors import own_errors
from ..scopes import Scope, allow
from .agent_shapes import ImageShape
from .answers import IdempotentDep, json_answer

router = APIRouter(
    prefix="/api/sessions/{session_id}/images",
    tags=["images"],
    responses=own_errors("unsupported_media_type"),
)
FILE = {"schema": {"type": "string", "format": "binary"}}


@router.post(
    "",
    status_code=201,
    response_model=ImageShape,
    dependencies=[Depends(allow(Scope.OPERATE))],
    openapi_extra={"requestBody": {"required": True, "content": {"application/octet-stream": FILE}}},
)
async def add(session_id: str, request: Request, context: ContextDep, idempotent: IdempotentDep) -> Response:
    """Store an image; the body is the file. Its type is found from its content."""
    session = await context.sessions.get(session_id)
    require_active(session.snapshot)
    images = context.sessions.services.images
    # The id is derived from the request, so that a repeated try writes the same file again.
    image = await asyncio.to_thread(images.add, session.id, await request.body(), idempotent.id)
    answer: PendingAnswer[None] | None = idempotent.pending_answer(201, lambda _: _image_json(image))
    if answer:
        await context.records.store_answer(answer)
    return json_answer(_image_json(image), 201)


@router.get("/{image_id}", response_class=Response, dependencies=[Depends(allow(Scope.VIEW))])
async def show(session_id: str, image_id: str, context: ContextDep) -> Response:
    """Return an image, with headers that keep browsers from treating it as a page of this origin."""
    session = await context.sessions.get(session_id)
    mime, data = await asyncio.to_thread(context.sessions.services.images.read, session.id, image_id)
    headers = {
        "Content-Disposition": f'attachment; filename="{image_id}"',
        "Content-Security-Policy": "sandbox; default-src 'none'",
    }
    return Response(data, headers=headers, media_type=mime)


def _image_json(image: Image) -> dict[str, Any]:
    """Return id, type and size of an image as a JSON object."""
    return {"id": image.id, "mimeType": image.mime, "size": image.size}
