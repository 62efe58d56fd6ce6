"""/api/import: sessions that another program saved."""

from fastapi import APIRouter, Depends
from starlette.responses import Response

from ...sessions.importing import import_sessions
from ...store.answers import KeptAnswer
from ..context import ContextDep
from ..scopes import Scope, allow
from .answers import OnceDep, json_answer
from .shapes import ImportedShape, ImportShape

router = APIRouter(prefix="/api/import", tags=["sessions"])


@router.post("", response_model=ImportedShape, dependencies=[Depends(allow(Scope.OPERATE))])
async def import_(body: ImportShape, context: ContextDep, once: OnceDep) -> Response:
    """Takes in what can be taken; a second time there is nothing left to take."""
    imported = await import_sessions(context.sessions, context.records, body.sessions)
    answer: KeptAnswer[None] | None = once.kept(200, lambda _: imported)
    if answer is not None:
        await context.records.answer_only(answer)
    return json_answer(imported)
