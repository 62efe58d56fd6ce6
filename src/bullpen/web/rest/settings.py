"""/api/settings: what can be changed while the server runs."""

from fastapi import APIRouter, Depends
from starlette.responses import Response

from ... import logs
from ...config import describe
from ..context import ContextDep
from ..scopes import Scope, allow
from .answers import json_answer
from .shapes import LogLevelShape, SettingsEditShape, SettingsShape

router = APIRouter(prefix="/api/settings", tags=["settings"], dependencies=[Depends(allow(Scope.ADMIN))])


@router.get("", response_model=SettingsShape)
async def show(context: ContextDep) -> Response:
    """What can be changed, and every setting this server runs with, as it was started."""
    return json_answer({"logLevel": logs.level(), "startedWith": describe(context.config)})


@router.patch("", response_model=LogLevelShape)
async def edit(body: SettingsEditShape) -> Response:
    """How much is logged, until the next start."""
    if body.log_level is not None:
        logs.set_level(body.log_level)
    return json_answer({"logLevel": logs.level()})
