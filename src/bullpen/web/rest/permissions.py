"""`/api/sessions/{id}/permissions`: list open permission requests of agents, and answer them."""

from typing import Any

from fastapi import APIRouter, Depends
from starlette.responses import Response

from ...domain.snapshot import PendingPermission
from ..scopes import Scope, allow
from .agent_shapes import PermissionAnswerShape, PermissionsShape
from .answers import IdempotentDep, json_answer
from .pending_requests import AnswererDep, SessionDep, asked_json

router = APIRouter(prefix="/api/sessions/{session_id}/permissions", tags=["permissions"])


@router.get("", response_model=PermissionsShape, dependencies=[Depends(allow(Scope.VIEW))])
async def list_permissions(session: SessionDep) -> Response:
    """Return the open requests, oldest first."""
    return json_answer({"permissions": [_permission_json(each) for each in session.snapshot.permissions]})


@router.post("/{permission_id}", status_code=204, dependencies=[Depends(allow(Scope.OPERATE))])
async def answer_permission(
    permission_id: str,
    body: PermissionAnswerShape,
    idempotent: IdempotentDep,
    session: SessionDep,
    by: AnswererDep,
) -> Response:
    """Answer a request; only the first answer has an effect."""
    await session.answer_permission(permission_id, body.option_id, by, idempotent.empty_answer())
    return Response(status_code=204)


def _permission_json(waiting: PendingPermission) -> dict[str, Any]:
    """Return an open permission request as a JSON object."""
    return asked_json(waiting.permission.id, waiting.worker, waiting.since) | {
        "toolCall": waiting.permission.tool_call,
        "options": waiting.permission.options,
    }
