"""`/api/search`: full-text search in all sessions, newest results first."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query
from starlette.responses import Response

from ...domain.errors import Invalid
from ...domain.searching import ROLES, TYPES
from ...store.search import SearchFilters, SearchHit, search
from ...wire.browser import iso_time
from ..context import ContextDep
from ..repository_filter import RepositoryFilterDep
from ..scopes import Scope, allow
from .answers import json_answer
from .messages import read_time
from .search_shapes import SearchShape

router = APIRouter(prefix="/api/search", tags=["search"])

MAX_RESULTS = 200


@router.get("", response_model=SearchShape, dependencies=[Depends(allow(Scope.VIEW))])
async def find(
    context: ContextDep,
    q: Annotated[str, Query(max_length=1000, description="words that a result must contain")],
    repo_id: RepositoryFilterDep,
    agent_id: Annotated[str | None, Query(alias="agentId")] = None,
    session_id: Annotated[str | None, Query(alias="sessionId")] = None,
    role: Annotated[str | None, Query(description="user, agent, system, title or terminal")] = None,
    type: Annotated[str | None, Query(description="type of the event")] = None,
    after: Annotated[str | None, Query(description="a time")] = None,
    before: Annotated[str | None, Query(description="a time")] = None,
    limit: Annotated[int, Query(ge=1, description="more than 200 is clamped")] = 20,
) -> Response:
    """Return the results that contain all words of `q` and match the filters."""
    filters = SearchFilters(
        repo_id=repo_id,
        agent_id=agent_id,
        session_id=session_id,
        role=None if role is None else _require_known("role", ROLES, role),
        type=None if type is None else _require_known("type", TYPES, type),
        after=None if after is None else read_time("after", after),
        before=None if before is None else read_time("before", before),
    )
    database = context.sessions.store.database
    found = await database.read(lambda c: search(c, q, filters, min(limit, MAX_RESULTS)))
    return json_answer({"results": [_found_json(each) for each in found]})


def _require_known(name: str, known: tuple[str, ...], value: str) -> str:
    """Raise Invalid for an unknown value: it would look like a search without results."""
    if value not in known:
        raise Invalid(f"{name} is one of {', '.join(known)}, not {value}")
    return value


def _found_json(found: SearchHit) -> dict[str, object]:
    """Return a search result as a JSON object."""
    return {
        "sessionId": found.session_id,
        "sessionTitle": found.session_title,
        "repoId": found.repo_id,
        "workerId": found.worker_id,
        "agentId": found.agent_id,
        "seq": found.seq,
        "type": found.type,
        "role": found.role,
        "timestamp": iso_time(found.timestamp),
        "run": found.run,
        "offset": found.offset,
        "snippet": found.snippet,
    }
