"""`/api/workers/{wid}/activity`: an agent in a terminal reports its activity."""

from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from ...domain.screen_patterns import JudgedActivity
from ...domain.states import Activity
from ..context import ContextDep
from ..scopes import Scope, allow_itself, principal_of
from .agent_shapes import ActivityShape
from .answers import IdempotentDep
from .asking import session_of

router = APIRouter(prefix="/api/workers/{worker_id}", tags=["agents"])


@router.post("/activity", status_code=204, dependencies=[Depends(allow_itself(Scope.OPERATE))])
async def report(
    worker_id: str, body: ActivityShape, request: Request, context: ContextDep, idempotent: IdempotentDep
) -> Response:
    """Report an activity, from a hook of an agent. It is used until the screen of the agent shows another."""
    session = await session_of(context, worker_id)
    run = principal_of(request).run
    words = " ".join("".join(c if c.isprintable() else " " for c in body.why or "").split())
    why = f"it says so: {words}" if words else "it says so"
    await session.report_activity(
        worker_id, run[1] if run else None, JudgedActivity(Activity(body.activity), why)
    )
    if answer := idempotent.empty_answer():
        await context.records.store_answer(answer)
    return Response(status_code=204)
