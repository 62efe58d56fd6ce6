"""`/api/sessions/{id}/prompt` and `/cancel`: send a prompt to an agent, and cancel its turn."""

from typing import Any

from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from ...domain.ids import new_id
from ...domain.prompts import ForwardSource, Prompt, PromptResult
from ..context import ContextDep
from ..delegates import allow_delegate
from ..errors import own_errors
from ..scopes import Scope, principal_of
from .agent_shapes import CancelShape, PromptedShape, PromptShape
from .answers import IdempotentDep, json_answer

router = APIRouter(prefix="/api/sessions/{session_id}", tags=["prompts"])
OPERATE = [Depends(allow_delegate(Scope.OPERATE))]


@router.post(
    "/prompt",
    status_code=202,
    response_model=PromptedShape,
    responses=own_errors("too_many", "remote_fault"),
    dependencies=OPERATE,
)
async def prompt(
    session_id: str, body: PromptShape, request: Request, context: ContextDep, idempotent: IdempotentDep
) -> Response:
    """Store a prompt and answer at once; the agent's answer follows as events."""
    session = await context.sessions.get(session_id)
    prompted = await session.prompt(prompt_order(body, principal_of(request).name, idempotent.id))
    return json_answer(prompted_json(prompted), 202)


@router.post("/cancel", status_code=204, dependencies=OPERATE)
async def cancel(
    session_id: str,
    request: Request,
    context: ContextDep,
    idempotent: IdempotentDep,
    body: CancelShape | None = None,
) -> Response:
    """Cancel the turn of an agent; do nothing if there is none. The session stays."""
    session = await context.sessions.get(session_id)
    await session.cancel_turn(
        body.worker_id if body else None, principal_of(request).name, idempotent.empty_answer()
    )
    return Response(status_code=204)


def prompt_order(body: PromptShape, sender: str, key: str | None = None) -> Prompt:
    """Return the prompt in a request; its key makes a repeated request the same prompt."""
    return Prompt(
        text=body.text,
        prompt_id=body.prompt_id or key or new_id(),
        worker_id=body.worker_id,
        role=body.role,
        image_ids=body.image_ids,
        busy=body.busy,
        sender=sender,
        source=ForwardSource(**body.source.model_dump()) if body.source else None,
    )


def prompted_json(prompted: PromptResult) -> dict[str, Any]:
    """Return the result of a prompt as a JSON object."""
    return {"promptId": prompted.prompt_id, "seq": prompted.seq, "queued": prompted.queued}
