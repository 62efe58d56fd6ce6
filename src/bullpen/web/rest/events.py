"""/api/sessions/{id}/events: the log of a session, page by page."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query
from starlette.responses import Response

from ..context import ContextDep
from ..delegates import allow_delegate
from ..numbers import LARGEST
from ..scopes import Scope
from .answers import json_bytes
from .shapes import EventsShape

router = APIRouter(prefix="/api/sessions/{session_id}/events", tags=["events"])

MOST = 10_000


@router.get("", response_model=EventsShape, dependencies=[Depends(allow_delegate(Scope.VIEW))])
async def list_events(
    session_id: str,
    context: ContextDep,
    after: Annotated[int, Query(ge=0, le=LARGEST)] = 0,
    before: Annotated[int | None, Query(ge=0, le=LARGEST)] = None,
    limit: Annotated[int, Query(ge=1, description="more than 10,000 is clamped")] = 1000,
    types: Annotated[str | None, Query(description="one or more, with commas")] = None,
    newest: Annotated[bool, Query(description="of more than the limit the last, not the first")] = False,
) -> Response:
    session = await context.sessions.get(session_id)
    wanted = [word.strip() for word in types.split(",")] if types else None
    events = await context.sessions.store.wire(
        session_id, after, before, min(limit, MOST), wanted, newest=newest
    )
    return json_bytes(b'{"events":[%b],"head":%d}' % (b",".join(events), session.log.head))
