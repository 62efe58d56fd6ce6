"""/api/workers/{wid}/questions: an agent asks a person something by itself, and looks for the answer."""

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request
from starlette.responses import Response

from ...domain.conversation import Question
from ...domain.errors import NotFound
from ...domain.ids import new_id
from ...domain.snapshot import Snapshot
from ...sessions.asking import ask_user, wait_for_answer
from ...sessions.session import Session
from ..context import ContextDep, WebContext
from ..numbers import LARGEST
from ..scopes import Scope, allow_itself, principal_of
from .agent_shapes import AskedShape, AskedStateShape, NewQuestionShape
from .answers import OnceDep, json_answer

router = APIRouter(prefix="/api/workers/{worker_id}/questions", tags=["questions"])
ITSELF = [Depends(allow_itself(Scope.OPERATE))]
ANSWER = "answer"  # the only field of the form a person fills in


@router.post("", status_code=201, response_model=AskedShape, dependencies=ITSELF)
async def ask_question(
    worker_id: str, body: NewQuestionShape, request: Request, context: ContextDep, once: OnceDep
) -> Response:
    """Waits in the inbox until somebody answers, the turn is cancelled or the agent ends."""
    session = await session_of(context, worker_id)
    question = Question(id=new_id(), message=body.message, status="pending", schema=_form(body.options))
    run = principal_of(request).run

    def told(snapshot: Snapshot) -> dict[str, Any]:
        return {"id": question.id, "seq": snapshot.last_seq}

    seq = await ask_user(session, worker_id, run[1] if run else None, question, once.answer(201, told))
    return json_answer({"id": question.id, "seq": seq}, 201)


@router.get("/{question_id}", response_model=AskedStateShape, dependencies=ITSELF)
async def question_state(
    worker_id: str,
    question_id: str,
    context: ContextDep,
    seq: Annotated[int, Query(ge=1, le=LARGEST, description="of the event that asked")],
    wait: Annotated[float, Query(ge=0, le=30, description="seconds to wait for an answer")] = 0,
) -> Response:
    """What has become of a question; with `wait` not before it is answered or the time is up."""
    session = await session_of(context, worker_id)
    question = await wait_for_answer(context.sessions, session, question_id, seq, wait)
    answer = question.answer.get(ANSWER) if isinstance(question.answer, dict) else None
    said = None if answer is None else str(answer)
    return json_answer({"id": question.id, "status": question.status, "answer": said, "by": question.by})


async def session_of(context: WebContext, worker_id: str) -> Session:
    """The session a worker is in."""
    owners = await context.records.sessions_of_workers([worker_id])
    if worker_id not in owners:
        raise NotFound(f"no worker {worker_id}")
    return await context.sessions.get(owners[worker_id])


def _form(options: Sequence[str]) -> dict[str, Any]:
    field: dict[str, Any] = {"type": "string", "title": "Answer"}
    if options:
        field["enum"] = list(options)
    return {"type": "object", "properties": {ANSWER: field}, "required": [ANSWER]}
