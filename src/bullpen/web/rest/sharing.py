"""`/api/sessions/{id}/share`: create a link that lets anyone view a session for a limited time."""

from typing import Any

from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from ... import clock
from ..auth import new_share
from ..context import ContextDep, context_of
from ..derived_secrets import SecretKind, new_seed
from ..scopes import Scope, allow
from .answers import IdempotentDep, completed_by, json_answer, split_seed
from .shapes import ShareAnswerShape, ShareShape
from .tokens import token_json

router = APIRouter(prefix="/api/sessions/{session_id}/share", tags=["recordings"])


def complete_share(request: Request, status: int, stored: dict[str, Any]) -> Response:
    """Add the token and the link to the answer; they are not stored."""
    seed, shown = split_seed(stored)
    context = context_of(request)
    token = context.secrets.make(SecretKind.TOKEN, seed)
    url = f"{context.public_url}/#share={shown['sessionId']}/{token}"
    return json_answer({**shown, "token": token, "url": url}, status)


@router.post(
    "",
    status_code=201,
    response_model=ShareAnswerShape,
    dependencies=[Depends(allow(Scope.ADMIN)), Depends(completed_by(complete_share))],
)
async def share(
    session_id: str, body: ShareShape, request: Request, context: ContextDep, idempotent: IdempotentDep
) -> Response:
    """Create a token for the view routes and sockets of this session; it expires."""
    session = await context.sessions.get(session_id)
    seed = new_seed()
    expires_at = clock.now_ms() + body.expires_in * 1000
    token = new_share(
        session.id, session.snapshot.title, context.secrets.make(SecretKind.TOKEN, seed), expires_at
    )
    stored = token_json(token) | {"seed": seed}
    await context.credentials.add_token(token, idempotent.pending_answer(201, lambda _: stored))
    return complete_share(request, 201, stored)
