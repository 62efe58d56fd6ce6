"""/api/sessions/{id}/share: a link that shows one session and does nothing, for a while."""

from typing import Any

from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from ... import clock
from ..auth import new_share
from ..context import ContextDep, context_of
from ..derived_secrets import SecretKind, new_seed
from ..scopes import Scope, allow
from .answers import OnceDep, completed_by, json_answer, without_seed
from .shapes import ShareAnswerShape, ShareShape
from .tokens import token_json

router = APIRouter(prefix="/api/sessions/{session_id}/share", tags=["recordings"])


def complete_share(request: Request, status: int, told: dict[str, Any]) -> Response:
    """Adds the secret and the link with it, which are nowhere stored."""
    seed, shown = without_seed(told)
    context = context_of(request)
    token = context.mint.make(SecretKind.TOKEN, seed)
    url = f"{context.public_url}/#share={shown['sessionId']}/{token}"
    return json_answer({**shown, "token": token, "url": url}, status)


@router.post(
    "",
    status_code=201,
    response_model=ShareAnswerShape,
    dependencies=[Depends(allow(Scope.ADMIN)), Depends(completed_by(complete_share))],
)
async def share(
    session_id: str, body: ShareShape, request: Request, context: ContextDep, once: OnceDep
) -> Response:
    """A token that opens the view routes and sockets of this session only, until it expires."""
    session = await context.sessions.get(session_id)
    seed = new_seed()
    expires_at = clock.now_ms() + body.expires_in * 1000
    token = new_share(
        session.id, session.snapshot.title, context.mint.make(SecretKind.TOKEN, seed), expires_at
    )
    told = token_json(token) | {"seed": seed}
    await context.credentials.add_token(token, once.kept(201, lambda _: told))
    return complete_share(request, 201, told)
