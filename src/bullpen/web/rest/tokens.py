"""/api/tokens: the keys to the house, and another one for its owner."""

from typing import Any

from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from ... import clock
from ...domain.commands import MAX_ROLE_LENGTH, check_text
from ...domain.records import Token
from ...wire.browser import iso_time
from ..auth import PROGRAMS, new_token, scope_named
from ..context import ContextDep, context_of
from ..derived_secrets import SecretKind, new_seed
from ..scopes import Scope, allow
from .answers import OnceDep, completed_by, json_answer, without_seed
from .shapes import NewTokenAnswerShape, NewTokenShape, RotatedShape, TokensShape

router = APIRouter(prefix="/api/tokens", tags=["tokens"])
ADMIN = Depends(allow(Scope.ADMIN))


def complete_token(request: Request, status: int, told: dict[str, Any]) -> Response:
    """Adds the token itself, which is nowhere stored."""
    seed, shown = without_seed(told)
    return json_answer({**shown, "token": context_of(request).mint.make(SecretKind.TOKEN, seed)}, status)


SHOWN_ONCE = Depends(completed_by(complete_token))


@router.get("", response_model=TokensShape, dependencies=[ADMIN])
async def list_tokens(context: ContextDep) -> Response:
    return json_answer({"tokens": [token_json(token) for token in context.credentials.tokens()]})


@router.post("", status_code=201, response_model=NewTokenAnswerShape, dependencies=[ADMIN, SHOWN_ONCE])
async def add(body: NewTokenShape, request: Request, context: ContextDep, once: OnceDep) -> Response:
    """A new token; its text is shown this once."""
    seed = new_seed()
    token = new_token(
        check_text("name", body.name, MAX_ROLE_LENGTH),
        context.mint.make(SecretKind.TOKEN, seed),
        scope_named(body.scope, PROGRAMS),
        clock.now_ms() + body.expires_in * 1000 if body.expires_in else None,
    )
    told = token_json(token) | {"seed": seed}
    await context.credentials.add_token(token, once.kept(201, lambda _: told))
    return complete_token(request, 201, told)


@router.post("/rotate", response_model=RotatedShape, dependencies=[ADMIN, SHOWN_ONCE])
async def rotate(request: Request, context: ContextDep, once: OnceDep) -> Response:
    """Another token for the owner, also in the file; the old one is dead at once, with its sockets."""
    told = {"seed": new_seed()}
    text = context.mint.make(SecretKind.TOKEN, told["seed"])
    await context.credentials.rotate_owner(text, once.kept(200, lambda _: told))
    return complete_token(request, 200, told)


@router.delete("/{token_id}", status_code=204, dependencies=[ADMIN])
async def revoke(token_id: str, context: ContextDep) -> Response:
    """The token is dead at once, and every socket it opened is closed."""
    await context.credentials.revoke(token_id)
    return Response(status_code=204)


def token_json(token: Token) -> dict[str, Any]:
    return {
        "id": token.id,
        "name": token.name,
        "scope": token.scope,
        "kind": _kind(token),
        "sessionId": token.session_id,
        "createdAt": iso_time(token.created_at),
        "lastUsedAt": iso_time(token.last_used_at) if token.last_used_at else None,
        "expiresAt": iso_time(token.expires_at) if token.expires_at else None,
    }


def _kind(token: Token) -> str:
    if token.session_id:
        return "share"
    return "device" if token.secret_hash else "token"
