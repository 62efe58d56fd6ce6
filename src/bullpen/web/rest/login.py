"""`/api/login` and `/api/login-codes`: log in a browser with a one-time code, and create such codes."""

from typing import Any

from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from ...domain.records import Token
from ..audit_middleware import peer_of
from ..auth import COOKIE, DEVICE_DAYS, BrowserLogin, parse_scope, principal_for
from ..context import ContextDep, context_of
from ..derived_secrets import SecretKind, new_seed
from ..errors import own_errors
from ..scopes import Scope, allow, public
from .answers import IdempotentDep, completed_by, json_answer, split_seed
from .shapes import LoggedInShape, LoginCodeShape, LoginShape, NewLoginCodeShape

router = APIRouter(prefix="/api", tags=["login"])


def complete_login(request: Request, status: int, stored: dict[str, Any]) -> Response:
    """Add the two secrets of the device to the answer: one in the body, one as a cookie."""
    secrets, (seed, shown) = context_of(request).secrets, split_seed(stored)
    answer = json_answer({"secret": secrets.make(SecretKind.SECOND, seed), **shown}, status)
    answer.set_cookie(
        COOKIE,
        secrets.make(SecretKind.DEVICE, seed),
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
async def log_in(
    body: LoginShape, request: Request, context: ContextDep, idempotent: IdempotentDep
) -> Response:
    """Exchange a one-time code for a cookie and the second secret of this origin."""
    seed = new_seed()
    login = BrowserLogin(
        code=body.code,
        device=body.device or request.headers.get("user-agent", ""),
        cookie=context.secrets.make(SecretKind.DEVICE, seed),
        secret=context.secrets.make(SecretKind.SECOND, seed),
    )

    def stored(token: Token) -> dict[str, Any]:
        return {"name": token.name, "scope": token.scope, "seed": seed}

    token = await context.credentials.log_in(
        login, peer_of(request.scope), idempotent.pending_answer(200, stored)
    )
    request.scope["principal"] = principal_for(token)  # for the audit log
    return complete_login(request, 200, stored(token))


def complete_code(request: Request, status: int, stored: dict[str, Any]) -> Response:
    """Add the login code and its URL to the answer."""
    context = context_of(request)
    code = context.secrets.make(SecretKind.CODE, stored["seed"])
    return json_answer({"code": code, "url": f"{context.public_url}/#code={code}"}, status)


@router.post(
    "/login-codes",
    status_code=201,
    response_model=LoginCodeShape,
    dependencies=[Depends(allow(Scope.ADMIN)), Depends(completed_by(complete_code))],
)
async def new_code(
    request: Request, context: ContextDep, idempotent: IdempotentDep, body: NewLoginCodeShape | None = None
) -> Response:
    """Create a code for one login within ten minutes, and the URL that contains it."""
    stored = {"seed": new_seed()}
    scope = parse_scope(body.scope) if body else Scope.ADMIN
    code = context.secrets.make(SecretKind.CODE, stored["seed"])
    await context.credentials.add_code(code, scope, idempotent.pending_answer(201, lambda _: stored))
    return complete_code(request, 201, stored)
