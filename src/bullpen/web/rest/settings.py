"""`/api/settings`: read all settings, and change those that may change while the server runs."""

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
    """Return the settings that can be changed, and all settings with which the server was started."""
    return json_answer({"logLevel": logs.level(), "startedWith": describe(context.config)})


@router.patch("", response_model=LogLevelShape)
async def edit(body: SettingsEditShape) -> Response:
    """Change the log level until the next start."""
    if body.log_level is not None:
        logs.set_level(body.log_level)
    return json_answer({"logLevel": logs.level()})
