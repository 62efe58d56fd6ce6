"""/api/sessions/{id}/questions: forms agents ask a person to fill in, and the one answer each gets."""

from typing import Any

from fastapi import APIRouter, Depends
from starlette.responses import Response

from ...domain.snapshot import PendingQuestion
from ..scopes import Scope, allow
from .agent_shapes import QuestionAnswerShape, QuestionsShape
from .answers import OnceDep, json_answer
from .asked import AnswererDep, SessionDep, asked_json

router = APIRouter(prefix="/api/sessions/{session_id}/questions", tags=["questions"])


@router.get("", response_model=QuestionsShape, dependencies=[Depends(allow(Scope.VIEW))])
async def list_questions(session: SessionDep) -> Response:
    """Only open ones, oldest first."""
    return json_answer({"questions": [_question_json(each) for each in session.snapshot.questions]})


@router.post("/{question_id}", status_code=204, dependencies=[Depends(allow(Scope.OPERATE))])
async def answer_question(
    question_id: str, body: QuestionAnswerShape, once: OnceDep, session: SessionDep, by: AnswererDep
) -> Response:
    """The first answer counts."""
    await session.answer_question(question_id, body.action, body.content, by, once.empty())
    return Response(status_code=204)


def _question_json(waiting: PendingQuestion) -> dict[str, Any]:
    return asked_json(waiting.question.id, waiting.worker, waiting.since) | {
        "message": waiting.question.message,
        "form": waiting.question.schema,
        "url": waiting.question.url,
    }
