"""`/api/import`: import sessions from a `sessions.json`; find the one that agent-console has saved."""

import asyncio
from typing import Any

from fastapi import APIRouter, Depends
from starlette.responses import Response

from ...sessions.agent_console import find_saved_sessions
from ...sessions.importing import import_sessions
from ...store.answers import PendingAnswer
from ..context import ContextDep
from ..scopes import Scope, allow
from .answers import IdempotentDep, json_answer
from .shapes import ImportedShape, ImportShape, SavedSessionsShape

router = APIRouter(prefix="/api/import", tags=["sessions"])


@router.get("", response_model=SavedSessionsShape, dependencies=[Depends(allow(Scope.ADMIN))])
async def show() -> Response:
    """Return the sessions that agent-console has saved in the home directory of the server's user."""
    found = await asyncio.to_thread(find_saved_sessions)
    return json_answer(found or {"path": None, "sessions": []})


@router.post("", response_model=ImportedShape, dependencies=[Depends(allow(Scope.OPERATE))])
async def import_(body: ImportShape | list[Any], context: ContextDep, idempotent: IdempotentDep) -> Response:
    """Import all valid entries that were not imported before. The body may be the file itself, a list."""
    entries = body if isinstance(body, list) else body.sessions
    imported = await import_sessions(context.sessions, context.records, entries)
    answer: PendingAnswer[None] | None = idempotent.pending_answer(200, lambda _: imported)
    if answer is not None:
        await context.records.store_answer(answer)
    return json_answer(imported)
