"""`/api/sessions/{id}/events`: the events of a session, in pages."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query
from starlette.responses import Response

from ..context import ContextDep
from ..delegates import allow_delegate
from ..numbers import MAX_SAFE_INTEGER
from ..scopes import Scope
from .answers import json_bytes
from .shapes import EventsShape

router = APIRouter(prefix="/api/sessions/{session_id}/events", tags=["events"])

MAX_RESULTS = 10_000


@router.get("", response_model=EventsShape, dependencies=[Depends(allow_delegate(Scope.VIEW))])
async def list_events(
    session_id: str,
    context: ContextDep,
    after: Annotated[int, Query(ge=0, le=MAX_SAFE_INTEGER)] = 0,
    before: Annotated[int | None, Query(ge=0, le=MAX_SAFE_INTEGER)] = None,
    limit: Annotated[int, Query(ge=1, description="more than 10,000 is clamped")] = 1000,
    types: Annotated[str | None, Query(description="one or more, separated by commas")] = None,
    newest: Annotated[bool, Query(description="return the last events instead of the first ones")] = False,
) -> Response:
    """Return events of the session in order, between `after` and `before`."""
    session = await context.sessions.get(session_id)
    event_types = [word.strip() for word in types.split(",")] if types else None
    events = await context.sessions.store.encoded_events(
        session_id, after, before, min(limit, MAX_RESULTS), event_types, newest=newest
    )
    return json_bytes(b'{"events":[%b],"head":%d}' % (b",".join(events), session.log.head))
