"""`/api/health`: 200 once all workers are continued, if the database answers."""

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
    """Return the state of the server. It needs no credential."""
    if not context.sessions.workers_resumed.is_set():
        return json_answer({"status": "starting", "version": __version__}, 503)
    store = context.sessions.store
    if store.database.unreachable:
        return json_answer({"status": "degraded", "version": __version__, "away": ["database"]}, 503)
    return json_answer({"status": "full" if store.full else "ok", "version": __version__})
