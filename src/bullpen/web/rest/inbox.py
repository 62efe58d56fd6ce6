"""`/api/inbox`: what waits for the user in all sessions; `/api/sessions/{id}/seen` marks it as seen."""

from fastapi import APIRouter, Depends
from starlette.responses import Response

from ...wire.browser import inbox_json
from ..context import ContextDep
from ..scopes import Scope, allow
from .answers import IdempotentDep, json_answer
from .inbox_shapes import InboxShape, SeenShape

router = APIRouter(tags=["inbox"])


@router.get("/api/inbox", response_model=InboxShape, dependencies=[Depends(allow(Scope.VIEW))])
async def show(context: ContextDep) -> Response:
    """Return the inbox, the most urgent items first, then the oldest."""
    return json_answer({"items": [inbox_json(item) for item in await context.inbox.items()]})


@router.post("/api/sessions/{session_id}/seen", status_code=204, dependencies=[Depends(allow(Scope.OPERATE))])
async def seen(
    session_id: str, context: ContextDep, idempotent: IdempotentDep, body: SeenShape | None = None
) -> Response:
    """Remove failed and finished items up to an event of a session from the inbox."""
    await context.inbox.mark_seen(session_id, body.seq if body else None, idempotent.empty_answer())
    return Response(status_code=204)
