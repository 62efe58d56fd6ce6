"""`/metrics`: the metrics of the server in the text format of Prometheus."""

from fastapi import APIRouter, Depends
from starlette.responses import Response

from ..context import ContextDep
from ..metrics import MetricsCollector, text_format
from ..scopes import Scope, allow

router = APIRouter(include_in_schema=False)

TEXT = "text/plain; version=0.0.4; charset=utf-8"


@router.get("/metrics", dependencies=[Depends(allow(Scope.ADMIN))])
async def metrics(context: ContextDep) -> Response:
    """Return the current metrics."""
    collector = MetricsCollector(
        context, await context.records.count_sessions(), await context.records.count_workers()
    )
    return Response(text_format(collector.all()), headers={"Content-Type": TEXT})
