"""Questions that a worker asks the user by a request to the server, not by the agent protocol.

The answer is only stored as an event; the caller waits for it with `wait_for_answer`.
"""

import asyncio

from ..domain.conversation import Question
from ..domain.errors import Conflict, NotFound
from ..domain.events import Draft
from ..domain.snapshot import Snapshot
from ..domain.states import WorkerState
from ..log.log import Change
from ..store.answers import PendingAnswer
from .session import Session
from .sessions import Sessions

MAX_OPEN_QUESTIONS = 20  # of one worker


async def ask_user(
    session: Session,
    worker_id: str,
    run: int | None,
    question: Question,
    answer: PendingAnswer[Snapshot] | None = None,
) -> int:
    """Store a question to the user and return the seq of its event. Raise Conflict if the run is over."""

    def decide(snapshot: Snapshot) -> Change:
        worker = snapshot.worker(worker_id)
        if worker.type != "agent":
            raise Conflict(f"the worker in role {worker.role} is a {worker.type}: only agents ask_user")
        if run not in (None, worker.run) or worker.state is not WorkerState.ACTIVE:
            raise Conflict(f"that run of the agent in role {worker.role} is over")
        conversation = snapshot.conversations.get(worker_id)
        if conversation is not None and len(conversation.questions) >= MAX_OPEN_QUESTIONS:
            raise Conflict(f"{MAX_OPEN_QUESTIONS} questions of this agent are open: wait for an answer")
        return Change(drafts=[Draft(question, worker_id, worker.role)], answer=answer)

    committed = await session.log.change(decide)
    return committed.snapshot.last_seq


async def wait_for_answer(
    sessions: Sessions, session: Session, question_id: str, seq: int, timeout_seconds: float
) -> Question:
    """Wait up to `timeout_seconds` seconds for the answer to the question of event `seq`.

    Return the question, which is still open if the time is over or the session was closed. Raise NotFound if
    that event did not ask it.
    """
    try:
        async with asyncio.timeout(timeout_seconds):
            while _is_open(session.snapshot, question_id) and not session.log.closed:
                await session.log.growth.wait()
    except TimeoutError:
        pass
    stored = await sessions.store.events(session.id, seq - 1, types=[Question.type])
    for event, _ in reversed(stored):
        if isinstance(event.fact, Question) and event.fact.id == question_id:
            return event.fact
    raise NotFound(f"no question {question_id} was asked by event {seq}")


def _is_open(snapshot: Snapshot, question_id: str) -> bool:
    """Return whether a question waits for an answer."""
    return any(waiting.question.id == question_id for waiting in snapshot.questions)
