"""/api/settings: what can be changed while the server runs."""

from fastapi import APIRouter, Depends
from starlette.responses import Response

from ... import logs
from ..scopes import Scope, allow
from .answers import json_answer
from .shapes import SettingsEditShape, SettingsShape

router = APIRouter(prefix="/api/settings", tags=["settings"], dependencies=[Depends(allow(Scope.ADMIN))])


@router.get("", response_model=SettingsShape)
async def show() -> Response:
    return json_answer({"logLevel": logs.level()})


@router.patch("", response_model=SettingsShape)
async def edit(body: SettingsEditShape) -> Response:
    """How much is logged, until the next start."""
    if body.log_level is not None:
        logs.set_level(body.log_level)
    return await show()
