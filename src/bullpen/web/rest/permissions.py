"""/api/sessions/{id}/permissions: what agents ask leave for, and the one answer each gets."""

from typing import Any

from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from ...domain.snapshot import Waiting
from ...wire.browser import iso
from ..context import ContextDep
from ..scopes import Scope, allow, principal_of
from .agent_shapes import PermissionAnswerShape, PermissionsShape
from .answers import OnceDep, json_answer

router = APIRouter(prefix="/api/sessions/{session_id}/permissions", tags=["permissions"])


@router.get("", response_model=PermissionsShape, dependencies=[Depends(allow(Scope.VIEW))])
async def list_permissions(session_id: str, context: ContextDep) -> Response:
    """Only open ones, oldest first."""
    session = await context.sessions.get(session_id)
    return json_answer({"permissions": [_permission_json(each) for each in session.snapshot.permissions]})


@router.post("/{permission_id}", status_code=204, dependencies=[Depends(allow(Scope.OPERATE))])
async def answer(
    session_id: str,
    permission_id: str,
    body: PermissionAnswerShape,
    request: Request,
    context: ContextDep,
    once: OnceDep,
) -> Response:
    """The first answer counts."""
    session = await context.sessions.get(session_id)
    by = principal_of(request).name
    await session.answer_permission(permission_id, body.option_id, by, once.empty())
    return Response(status_code=204)


def _permission_json(waiting: Waiting) -> dict[str, Any]:
    return {
        "id": waiting.permission.id,
        "workerId": waiting.worker.id,
        "role": waiting.worker.role,
        "toolCall": waiting.permission.tool_call,
        "options": waiting.permission.options,
        "createdAt": iso(waiting.since),
    }
