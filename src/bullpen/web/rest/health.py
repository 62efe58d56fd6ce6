"""/api/health: 200 only when every worker has been adopted."""

from fastapi import APIRouter, Depends
from starlette.responses import Response

from ... import __version__
from ..context import ContextDep
from ..scopes import public
from .answers import json_answer
from .shapes import HealthShape

router = APIRouter(tags=["health"])


@router.get(
    "/api/health",
    response_model=HealthShape,
    responses={503: {"model": HealthShape}},
    dependencies=[Depends(public())],
)
async def health(context: ContextDep) -> Response:
    if not context.sessions.taken_up.is_set():
        return json_answer({"status": "starting", "version": __version__}, 503)
    status = "full" if context.sessions.store.full else "ok"
    return json_answer({"status": status, "version": __version__})
