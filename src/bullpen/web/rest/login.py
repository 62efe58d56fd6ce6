"""/api/login and /api/login-codes: how a browser becomes a device."""

from typing import Any

from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from ...domain.records import Token
from ..audit_middleware import peer_of
from ..auth import COOKIE, DEVICE_DAYS, BrowserLogin, principal_for, scope_named
from ..context import ContextDep, context_of
from ..derived_secrets import SecretKind, new_seed
from ..errors import own_errors
from ..scopes import Scope, allow, public
from .answers import OnceDep, completed_by, json_answer, without_seed
from .shapes import LoggedInShape, LoginCodeShape, LoginShape, NewLoginCodeShape

router = APIRouter(prefix="/api", tags=["login"])


def complete_login(request: Request, status: int, told: dict[str, Any]) -> Response:
    """Adds the device's two secrets: one in the answer, one as a cookie."""
    mint, (seed, shown) = context_of(request).mint, without_seed(told)
    answer = json_answer({"secret": mint.make(SecretKind.SECOND, seed), **shown}, status)
    answer.set_cookie(
        COOKIE,
        mint.make(SecretKind.DEVICE, seed),
        max_age=DEVICE_DAYS * 86_400,
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
    )
    return answer


@router.post(
    "/login",
    response_model=LoggedInShape,
    responses=own_errors("too_many"),
    dependencies=[Depends(public()), Depends(completed_by(complete_login))],
)
async def log_in(body: LoginShape, request: Request, context: ContextDep, once: OnceDep) -> Response:
    """Trades a one-time code for a cookie and the second secret of this origin."""
    seed = new_seed()
    login = BrowserLogin(
        code=body.code,
        device=body.device or request.headers.get("user-agent", ""),
        cookie=context.mint.make(SecretKind.DEVICE, seed),
        secret=context.mint.make(SecretKind.SECOND, seed),
    )

    def told(token: Token) -> dict[str, Any]:
        return {"name": token.name, "scope": token.scope, "seed": seed}

    token = await context.credentials.log_in(login, peer_of(request.scope), once.kept(200, told))
    request.scope["principal"] = principal_for(token)  # for the audit log
    return complete_login(request, 200, told(token))


def complete_code(request: Request, status: int, told: dict[str, Any]) -> Response:
    context = context_of(request)
    code = context.mint.make(SecretKind.CODE, told["seed"])
    return json_answer({"code": code, "url": f"{context.public_url}/#code={code}"}, status)


@router.post(
    "/login-codes",
    status_code=201,
    response_model=LoginCodeShape,
    dependencies=[Depends(allow(Scope.ADMIN)), Depends(completed_by(complete_code))],
)
async def new_code(
    request: Request, context: ContextDep, once: OnceDep, body: NewLoginCodeShape | None = None
) -> Response:
    """A code for one login within ten minutes, and the URL that carries it."""
    told = {"seed": new_seed()}
    scope = scope_named(body.scope) if body else Scope.ADMIN
    code = context.mint.make(SecretKind.CODE, told["seed"])
    await context.credentials.add_code(code, scope, once.kept(201, lambda _: told))
    return complete_code(request, 201, told)
