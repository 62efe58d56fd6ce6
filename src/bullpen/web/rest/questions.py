"""/api/sessions/{id}/questions: forms agents ask a person to fill in, and the one answer each gets."""

from typing import Any

from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from ...domain.snapshot import WaitingQuestion
from ...wire.browser import iso
from ..context import ContextDep
from ..scopes import Scope, allow, principal_of
from .agent_shapes import QuestionAnswerShape, QuestionsShape
from .answers import OnceDep, json_answer

router = APIRouter(prefix="/api/sessions/{session_id}/questions", tags=["questions"])


@router.get("", response_model=QuestionsShape, dependencies=[Depends(allow(Scope.VIEW))])
async def list_questions(session_id: str, context: ContextDep) -> Response:
    """Only open ones, oldest first."""
    session = await context.sessions.get(session_id)
    return json_answer({"questions": [_question_json(each) for each in session.snapshot.questions]})


@router.post("/{question_id}", status_code=204, dependencies=[Depends(allow(Scope.OPERATE))])
async def answer(
    session_id: str,
    question_id: str,
    body: QuestionAnswerShape,
    request: Request,
    context: ContextDep,
    once: OnceDep,
) -> Response:
    """The first answer counts."""
    session = await context.sessions.get(session_id)
    by = principal_of(request).name
    await session.answer_question(question_id, body.action, body.content, by, once.empty())
    return Response(status_code=204)


def _question_json(waiting: WaitingQuestion) -> dict[str, Any]:
    return {
        "id": waiting.question.id,
        "workerId": waiting.worker.id,
        "role": waiting.worker.role,
        "message": waiting.question.message,
        "form": waiting.question.schema,
        "url": waiting.question.url,
        "createdAt": iso(waiting.since),
    }
