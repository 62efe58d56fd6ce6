"""/api/workers/{wid}/activity: an agent in a terminal says itself what it does."""

from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from ...domain.signs import JudgedActivity
from ...domain.states import Activity
from ..context import ContextDep
from ..scopes import Scope, allow_itself, principal_of
from .agent_shapes import ActivityShape
from .answers import OnceDep
from .asking import session_of

router = APIRouter(prefix="/api/workers/{worker_id}", tags=["agents"])


@router.post("/activity", status_code=204, dependencies=[Depends(allow_itself(Scope.OPERATE))])
async def report(
    worker_id: str, body: ActivityShape, request: Request, context: ContextDep, once: OnceDep
) -> Response:
    """For hooks of agents that can call one; it counts until the agent's screen shows something else."""
    session = await session_of(context, worker_id)
    run = principal_of(request).run
    words = " ".join("".join(c if c.isprintable() else " " for c in body.why or "").split())
    why = f"it says so: {words}" if words else "it says so"
    await session.report_activity(
        worker_id, run[1] if run else None, JudgedActivity(Activity(body.activity), why)
    )
    if answer := once.kept_empty():
        await context.records.answer_only(answer)
    return Response(status_code=204)
