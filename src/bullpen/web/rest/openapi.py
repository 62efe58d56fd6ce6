"""/api/openapi.json: what the routes say of themselves."""

from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from ..scopes import Scope, allow
from .answers import json_answer

router = APIRouter(include_in_schema=False)


@router.get("/api/openapi.json", dependencies=[Depends(allow(Scope.VIEW))])
async def document(request: Request) -> Response:
    return json_answer(request.app.openapi())
