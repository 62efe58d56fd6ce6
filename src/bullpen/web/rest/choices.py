"""`/api/sessions/{id}/workers/{wid}/mode`, `/model`, `/options`, `/login`: settings and login of an agent."""

from fastapi import APIRouter, Depends
from starlette.responses import Response

from ...domain.snapshot import Snapshot
from ...wire.browser import worker_json
from ..context import ContextDep
from ..errors import own_errors
from ..scopes import Scope, allow
from .agent_shapes import ModeChoiceShape, ModelChoiceShape, OptionChoiceShape
from .answers import IdempotentDep, json_answer
from .shapes import WorkerShape

router = APIRouter(
    prefix="/api/sessions/{session_id}/workers/{worker_id}",
    tags=["agents"],
    responses=own_errors("remote_fault"),
)
OPERATE = [Depends(allow(Scope.OPERATE))]


@router.put("/mode", status_code=204, dependencies=OPERATE)
async def set_mode(session_id: str, worker_id: str, body: ModeChoiceShape, context: ContextDep) -> Response:
    """Request a mode of the agent; an event follows when it is set."""
    session = await context.sessions.get(session_id)
    await session.set_mode(worker_id, body.mode_id)
    return Response(status_code=204)


@router.put("/model", status_code=204, dependencies=OPERATE)
async def set_model(session_id: str, worker_id: str, body: ModelChoiceShape, context: ContextDep) -> Response:
    """Request a model of the agent; an event follows when it is set."""
    session = await context.sessions.get(session_id)
    await session.set_model(worker_id, body.model_id)
    return Response(status_code=204)


@router.put("/options/{option_id}", status_code=204, dependencies=OPERATE)
async def set_option(
    session_id: str, worker_id: str, option_id: str, body: OptionChoiceShape, context: ContextDep
) -> Response:
    """Request a value for an option of the agent; an event follows when it is set."""
    session = await context.sessions.get(session_id)
    await session.set_config_option(worker_id, option_id, body.value)
    return Response(status_code=204)


@router.post("/login", status_code=201, response_model=WorkerShape, dependencies=OPERATE)
async def log_in(session_id: str, worker_id: str, context: ContextDep, idempotent: IdempotentDep) -> Response:
    """Start the login command of the agent in a terminal."""
    session = await context.sessions.get(session_id)

    def render(snapshot: Snapshot) -> object:
        return worker_json(list(snapshot.workers.values())[-1], session_id)

    terminal = await session.log_in(worker_id, idempotent.pending_answer(201, render))
    return json_answer(worker_json(terminal, session_id), 201)
