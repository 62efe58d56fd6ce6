"""`/api/tokens`: list, create and revoke tokens, and rotate the owner's token."""

from typing import Any

from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from ... import clock
from ...domain.commands import MAX_ROLE_LENGTH, check_text
from ...domain.records import Token
from ...wire.browser import iso_time
from ..auth import TOKEN_SCOPES, new_token, parse_scope
from ..context import ContextDep, context_of
from ..derived_secrets import SecretKind, new_seed
from ..scopes import Scope, allow
from .answers import IdempotentDep, completed_by, json_answer, split_seed
from .shapes import NewTokenAnswerShape, NewTokenShape, RotatedTokenShape, TokensShape

router = APIRouter(prefix="/api/tokens", tags=["tokens"])
ADMIN = Depends(allow(Scope.ADMIN))


def complete_token(request: Request, status: int, stored: dict[str, Any]) -> Response:
    """Add the token itself to the answer; it is not stored."""
    seed, shown = split_seed(stored)
    return json_answer({**shown, "token": context_of(request).secrets.make(SecretKind.TOKEN, seed)}, status)


SHOWN_ONCE = Depends(completed_by(complete_token))


@router.get("", response_model=TokensShape, dependencies=[ADMIN])
async def list_tokens(request: Request, context: ContextDep) -> Response:
    """Return all tokens and devices, without their secrets, and which of them made this request."""
    tokens = [token_json(token) for token in context.credentials.tokens()]
    caller = request.scope["principal"].id
    current = next((token["id"] for token in tokens if token["id"] == caller), None)
    return json_answer({"tokens": tokens, "current": current})


@router.post("", status_code=201, response_model=NewTokenAnswerShape, dependencies=[ADMIN, SHOWN_ONCE])
async def add(
    body: NewTokenShape, request: Request, context: ContextDep, idempotent: IdempotentDep
) -> Response:
    """Create a token; only this answer contains its text."""
    seed = new_seed()
    token = new_token(
        check_text("name", body.name, MAX_ROLE_LENGTH),
        context.secrets.make(SecretKind.TOKEN, seed),
        parse_scope(body.scope, TOKEN_SCOPES),
        clock.now_ms() + body.expires_in * 1000 if body.expires_in else None,
    )
    stored = token_json(token) | {"seed": seed}
    await context.credentials.add_token(token, idempotent.pending_answer(201, lambda _: stored))
    return complete_token(request, 201, stored)


@router.post("/rotate", response_model=RotatedTokenShape, dependencies=[ADMIN, SHOWN_ONCE])
async def rotate(request: Request, context: ContextDep, idempotent: IdempotentDep) -> Response:
    """Replace the owner's token. The old one is refused at once, and its sockets are closed."""
    stored = {"seed": new_seed()}
    text = context.secrets.make(SecretKind.TOKEN, stored["seed"])
    await context.credentials.rotate_owner(text, idempotent.pending_answer(200, lambda _: stored))
    return complete_token(request, 200, stored)


@router.delete("/{token_id}", status_code=204, dependencies=[ADMIN])
async def revoke(token_id: str, context: ContextDep) -> Response:
    """Revoke a token, and close every socket it opened."""
    await context.credentials.revoke(token_id)
    return Response(status_code=204)


def token_json(token: Token) -> dict[str, Any]:
    """Return a token, without its secret, as a JSON object."""
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
    """Return whether the token is a share link, a device or a plain token."""
    if token.session_id:
        return "share"
    return "device" if token.secret_hash else "token"
