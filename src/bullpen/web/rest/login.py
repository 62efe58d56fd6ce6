"""/api/login and /api/tokens: codes, devices and tokens."""

from typing import Any

from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from ... import clock
from ...domain.commands import MAX_ROLE, check_text
from ...domain.records import Token
from ...wire.browser import iso
from ..auth import COOKIE, DEVICE_DAYS, scope_named
from ..context import ContextDep
from ..scopes import Scope, allow, public
from .answers import json_answer
from .shapes import (
    LoggedInShape,
    LoginCodeShape,
    LoginShape,
    NewTokenAnswerShape,
    NewTokenShape,
    TokensShape,
)

router = APIRouter(prefix="/api", tags=["login"])
ADMIN = [Depends(allow(Scope.ADMIN))]


@router.post("/login", response_model=LoggedInShape, dependencies=[Depends(public())])
async def log_in(body: LoginShape, request: Request, context: ContextDep) -> Response:
    """Trades a one-time code for a cookie and the second secret of this origin."""
    device = body.device or request.headers.get("user-agent", "")
    login = await context.credentials.log_in(body.code, device)
    answer = json_answer(
        {"secret": login.secret, "name": login.principal.name, "scope": login.principal.scope.name.lower()}
    )
    answer.set_cookie(
        COOKIE,
        login.cookie,
        max_age=DEVICE_DAYS * 86_400,
        httponly=True,
        samesite="strict",
        secure=context.config.scheme == "https",
    )
    return answer


@router.post("/login-codes", status_code=201, response_model=LoginCodeShape, dependencies=ADMIN)
async def new_code(context: ContextDep) -> Response:
    """A code for one login within ten minutes, and the URL that carries it."""
    code = context.credentials.new_code()
    return json_answer({"code": code, "url": f"{context.url}/#code={code}"}, 201)


@router.get("/tokens", response_model=TokensShape, dependencies=ADMIN)
async def list_tokens(context: ContextDep) -> Response:
    return json_answer({"tokens": [_token_json(token) for token in context.credentials.tokens()]})


@router.post("/tokens", status_code=201, response_model=NewTokenAnswerShape, dependencies=ADMIN)
async def add_token(body: NewTokenShape, context: ContextDep) -> Response:
    """A new token; its text is shown this once."""
    expires = clock.now_ms() + body.expires_in * 1000 if body.expires_in else None
    name = check_text("name", body.name, MAX_ROLE)
    token, text = await context.credentials.add_token(name, scope_named(body.scope), expires)
    return json_answer(_token_json(token) | {"token": text}, 201)


@router.delete("/tokens/{token_id}", status_code=204, dependencies=ADMIN)
async def revoke_token(token_id: str, context: ContextDep) -> Response:
    """The token is dead at once, and every socket it opened is closed."""
    await context.credentials.revoke(token_id)
    return Response(status_code=204)


def _token_json(token: Token) -> dict[str, Any]:
    return {
        "id": token.id,
        "name": token.name,
        "scope": token.scope,
        "kind": "device" if token.secret_hash else "token",
        "createdAt": iso(token.created_at),
        "expiresAt": iso(token.expires_at) if token.expires_at else None,
    }
