"""`/api/usage`: the sums of tokens and cost that agents reported."""

from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query
from msgspec.structs import asdict
from starlette.responses import Response

from ...store.usage import UsageFilters, UsageTotals, read_usage
from ...wire.browser import iso_time
from ..context import ContextDep
from ..repository_filter import RepositoryFilterDep
from ..scopes import Scope, allow
from .answers import json_answer
from .messages import read_time
from .usage_shapes import UsageShape

router = APIRouter(prefix="/api/usage", tags=["usage"])

MAX_RESULTS = 1000
MINUTE_MS = 60_000


@router.get("", response_model=UsageShape, dependencies=[Depends(allow(Scope.VIEW))])
async def show(
    context: ContextDep,
    repo_id: RepositoryFilterDep,
    by: Literal["day", "turn", "session", "repository", "agent"] = "day",
    agent_id: Annotated[str | None, Query(alias="agentId")] = None,
    session_id: Annotated[str | None, Query(alias="sessionId")] = None,
    after: Annotated[str | None, Query(description="a time")] = None,
    before: Annotated[str | None, Query(description="a time")] = None,
    utc_offset: Annotated[
        int,
        Query(
            alias="utcOffset", ge=-1440, le=1440, description="minutes east of UTC, for the limits of days"
        ),
    ] = 0,
    limit: Annotated[int, Query(ge=1, description="more than 1,000 is clamped")] = 100,
) -> Response:
    """Return sums by day, turn, session, repository or agent, with their total."""
    filters = UsageFilters(
        repo_id=repo_id,
        agent_id=agent_id,
        session_id=session_id,
        after=None if after is None else read_time("after", after),
        before=None if before is None else read_time("before", before),
    )
    database = context.sessions.store.database
    groups, total = await database.read(
        lambda c: read_usage(c, by, filters, min(limit, MAX_RESULTS), utc_offset * MINUTE_MS)
    )
    answer = {"by": by, "groups": [_group_json(each) for each in groups], "total": _sums_json(total)}
    return json_answer(answer)


def _group_json(used: UsageTotals) -> dict[str, object]:
    """Return the usage of a group, with its key and title, as a JSON object."""
    group = {"key": used.key, "title": used.title, "sessionId": used.session_id, "seq": used.seq}
    return group | {"since": iso_time(used.at)} | _sums_json(used)


def _sums_json(used: UsageTotals) -> dict[str, object]:
    """Return the sums of tokens and cost as a JSON object."""
    tokens = used.tokens
    return {
        "turns": used.turns,
        "inputTokens": tokens.input,
        "outputTokens": tokens.output,
        "cachedReadTokens": tokens.cached_read,
        "cachedWriteTokens": tokens.cached_write,
        "thoughtTokens": tokens.thought,
        "totalTokens": tokens.total,
        "costs": [asdict(cost) for cost in used.costs],
    }
