"""`/api/sessions/{id}/questions`: list open questions (forms) of agents, and answer them."""

from typing import Any

from fastapi import APIRouter, Depends
from starlette.responses import Response

from ...domain.snapshot import PendingQuestion
from ..scopes import Scope, allow
from .agent_shapes import QuestionAnswerShape, QuestionsShape
from .answers import IdempotentDep, json_answer
from .pending_requests import AnswererDep, SessionDep, asked_json

router = APIRouter(prefix="/api/sessions/{session_id}/questions", tags=["questions"])


@router.get("", response_model=QuestionsShape, dependencies=[Depends(allow(Scope.VIEW))])
async def list_questions(session: SessionDep) -> Response:
    """Return the open questions, oldest first."""
    return json_answer({"questions": [_question_json(each) for each in session.snapshot.questions]})


@router.post("/{question_id}", status_code=204, dependencies=[Depends(allow(Scope.OPERATE))])
async def answer_question(
    question_id: str,
    body: QuestionAnswerShape,
    idempotent: IdempotentDep,
    session: SessionDep,
    by: AnswererDep,
) -> Response:
    """Answer a question; only the first answer has an effect."""
    await session.answer_question(question_id, body.action, body.content, by, idempotent.empty_answer())
    return Response(status_code=204)


def _question_json(waiting: PendingQuestion) -> dict[str, Any]:
    """Return an open question, with its form or URL, as a JSON object."""
    return asked_json(waiting.question.id, waiting.worker, waiting.since) | {
        "message": waiting.question.message,
        "form": waiting.question.schema,
        "url": waiting.question.url,
    }
