"""`/api/import`: import sessions from a `sessions.json`."""

from fastapi import APIRouter, Depends
from starlette.responses import Response

from ...sessions.importing import import_sessions
from ...store.answers import PendingAnswer
from ..context import ContextDep
from ..scopes import Scope, allow
from .answers import IdempotentDep, json_answer
from .shapes import ImportedShape, ImportShape

router = APIRouter(prefix="/api/import", tags=["sessions"])


@router.post("", response_model=ImportedShape, dependencies=[Depends(allow(Scope.OPERATE))])
async def import_(body: ImportShape, context: ContextDep, idempotent: IdempotentDep) -> Response:
    """Import all valid entries that do not exist yet; a second import changes nothing."""
    imported = await import_sessions(context.sessions, context.records, body.sessions)
    answer: PendingAnswer[None] | None = idempotent.pending_answer(200, lambda _: imported)
    if answer is not None:
        await context.records.store_answer(answer)
    return json_answer(imported)
