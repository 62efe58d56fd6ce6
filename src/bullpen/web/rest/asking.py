"""`/api/workers/{wid}/questions`: an agent asks the user a question, and waits for the answer."""

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request
from starlette.responses import Response

from ...domain.conversation import Question
from ...domain.errors import NotFound
from ...domain.ids import new_id
from ...domain.snapshot import Snapshot
from ...sessions.session import Session
from ...sessions.worker_questions import ask_user, wait_for_answer
from ..context import ContextDep, WebContext
from ..numbers import MAX_SAFE_INTEGER
from ..scopes import Scope, allow_itself, principal_of
from .agent_shapes import AskedQuestionShape, AskedQuestionStateShape, NewQuestionShape
from .answers import IdempotentDep, json_answer

router = APIRouter(prefix="/api/workers/{worker_id}/questions", tags=["questions"])
ITSELF = [Depends(allow_itself(Scope.OPERATE))]
ANSWER = "answer"  # the only field of the form


@router.post("", status_code=201, response_model=AskedQuestionShape, dependencies=ITSELF)
async def ask_question(
    worker_id: str, body: NewQuestionShape, request: Request, context: ContextDep, idempotent: IdempotentDep
) -> Response:
    """Add a question to the inbox. It stays until it is answered, the turn is cancelled or the agent ends."""
    session = await session_of(context, worker_id)
    question = Question(id=new_id(), message=body.message, status="pending", schema=_form(body.options))
    run = principal_of(request).run

    def render(snapshot: Snapshot) -> dict[str, Any]:
        return {"id": question.id, "seq": snapshot.last_seq}

    seq = await ask_user(
        session, worker_id, run[1] if run else None, question, idempotent.pending_answer(201, render)
    )
    return json_answer({"id": question.id, "seq": seq}, 201)


@router.get("/{question_id}", response_model=AskedQuestionStateShape, dependencies=ITSELF)
async def question_state(
    worker_id: str,
    question_id: str,
    context: ContextDep,
    seq: Annotated[
        int, Query(ge=1, le=MAX_SAFE_INTEGER, description="seq of the event that asks the question")
    ],
    wait: Annotated[float, Query(ge=0, le=30, description="seconds to wait for an answer")] = 0,
) -> Response:
    """Return a question and its answer. With `wait`, wait at most so many seconds for the answer."""
    session = await session_of(context, worker_id)
    question = await wait_for_answer(context.sessions, session, question_id, seq, wait)
    answer = question.answer.get(ANSWER) if isinstance(question.answer, dict) else None
    text = None if answer is None else str(answer)
    return json_answer({"id": question.id, "status": question.status, "answer": text, "by": question.by})


async def session_of(context: WebContext, worker_id: str) -> Session:
    """Return the session of a worker. Raise NotFound if there is no such worker."""
    owners = await context.records.sessions_of_workers([worker_id])
    if worker_id not in owners:
        raise NotFound(f"no worker {worker_id}")
    return await context.sessions.get(owners[worker_id])


def _form(options: Sequence[str]) -> dict[str, Any]:
    """Return the form of a question: one text field, or a choice between options."""
    field: dict[str, Any] = {"type": "string", "title": "Answer"}
    if options:
        field["enum"] = list(options)
    return {"type": "object", "properties": {ANSWER: field}, "required": [ANSWER]}
