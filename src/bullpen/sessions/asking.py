"""A worker asks a person something by itself, through the door: the question waits as an agent's does.

The answer goes nowhere but into the log; whoever asked looks for it there.
"""

import asyncio

from ..domain.conversation import Question
from ..domain.errors import Conflict, NotFound
from ..domain.events import Draft
from ..domain.snapshot import Snapshot
from ..domain.states import WorkerState
from ..log.log import Change, RequestAnswer
from .session import Session
from .sessions import Sessions

MOST_OPEN = 20  # questions of one worker


async def ask(
    session: Session, worker_id: str, run: int | None, question: Question, answer: RequestAnswer | None = None
) -> int:
    """Puts a question into the inbox; the number of the event that asks it."""

    def decide(snapshot: Snapshot) -> Change:
        worker = snapshot.worker(worker_id)
        if worker.type != "agent":
            raise Conflict(f"the worker in role {worker.role} is a {worker.type}: only agents ask")
        if run not in (None, worker.run) or worker.state is not WorkerState.ACTIVE:
            raise Conflict(f"that run of the agent in role {worker.role} is over")
        conversation = snapshot.conversations.get(worker_id)
        if conversation is not None and len(conversation.questions) >= MOST_OPEN:
            raise Conflict(f"{MOST_OPEN} questions of this agent are open: wait for an answer")
        return Change(drafts=[Draft(question, worker_id, worker.role)], answer=answer)

    committed = await session.log.change(decide)
    return committed.snapshot.last_seq


async def answer_to(
    sessions: Sessions, session: Session, question_id: str, seq: int, patience: float
) -> Question:
    """The question asked by an event as it stands now: answered or, when patience ends, still open."""
    try:
        async with asyncio.timeout(patience):
            while _is_open(session.snapshot, question_id) and not session.log.closed:
                await session.log.news.wait()
    except TimeoutError:
        pass
    told = await sessions.store.events(session.id, seq - 1, types=[Question.type])
    for event, _ in reversed(told):
        if isinstance(event.fact, Question) and event.fact.id == question_id:
            return event.fact
    raise NotFound(f"no question {question_id} was asked by event {seq}")


def _is_open(snapshot: Snapshot, question_id: str) -> bool:
    return any(waiting.question.id == question_id for waiting in snapshot.questions)
