"""`/api/sessions/{id}/messages`: the messages of a conversation, read from the log."""

from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query
from starlette.responses import Response

from ...domain.errors import Invalid
from ...wire.browser import iso_time
from ...wire.json import decode
from ..context import ContextDep, WebContext
from ..delegates import allow_delegate
from ..scopes import Scope
from .answers import json_answer
from .shapes import MessagesShape

router = APIRouter(prefix="/api/sessions/{session_id}/messages", tags=["messages"])

MAX_RESULTS = 10_000


@router.get("", response_model=MessagesShape, dependencies=[Depends(allow_delegate(Scope.VIEW))])
async def list_messages(
    session_id: str,
    context: ContextDep,
    since: Annotated[
        str | None, Query(description="a time; only messages that are new or have changed later")
    ] = None,
    limit: Annotated[int, Query(ge=1, description="more than 10,000 is clamped")] = 1000,
    newest: Annotated[bool, Query(description="return the last messages instead of the first ones")] = False,
) -> Response:
    """Return the messages of the session, oldest first."""
    await context.sessions.get(session_id)
    after = None if since is None else read_time("since", since)
    messages = await messages_of(context, session_id, after, min(limit, MAX_RESULTS), newest=newest)
    return json_answer({"messages": messages})


async def messages_of(
    context: WebContext,
    session_id: str,
    since: int | None = None,
    limit: int = MAX_RESULTS,
    *,
    newest: bool = False,
) -> list[dict[str, Any]]:
    """Return the messages after a time in milliseconds, oldest first."""
    rows = await context.sessions.store.messages(session_id, since, limit, newest=newest)
    return [_message_json(row) for row in rows]


def _message_json(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row of `messages` as a JSON object."""
    return {
        "id": row["id"],
        "sessionId": row["session_id"],
        "seq": row["seq"],
        "role": row["role"],
        "content": decode(row["content"]),
        "timestamp": iso_time(row["timestamp"]),
        "updatedAt": iso_time(row["updated_at"] or row["timestamp"]),
    }


def read_time(name: str, text: str) -> int:
    """Return a time of a request in milliseconds, or raise Invalid. Without a time zone it is UTC."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise Invalid(f"{name} is a time in ISO 8601, not {text}") from None
    time = time if time.tzinfo else time.replace(tzinfo=UTC)
    return round(time.timestamp() * 1000)
