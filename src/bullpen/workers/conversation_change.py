"""One change in the conversation with an agent: what is told of it, and the lines that go to it.

Every line is told by one fact, and so its number is known before the store gives it out. What an agent's
activity is follows from its conversation; a change that alters it says so.
"""

from collections.abc import Callable, Sequence

from ..domain import commands, queue
from ..domain.conversation import TURN_FAILED, TurnEnd, TurnStart, UserPrompt
from ..domain.conversation_rules import cancel_open_items
from ..domain.conversation_state import Conversation, fold_conversation
from ..domain.errors import Conflict
from ..domain.events import (
    Draft,
    Event,
    Fact,
    WorkerActivity,
    WorkerExited,
    WorkerFailed,
    WorkerReady,
    WorkerTerminated,
)
from ..domain.prompts import Prompt
from ..domain.snapshot import Snapshot, Worker, shows_agent_answer
from ..domain.states import Activity, SessionStatus, WorkerState
from ..log.log import Change, Consumed, OutboxLine, RequestAnswer
from ..wire.acp_calls import OutgoingLine

NOT_ASKED = "waits for a prompt"  # the page knows by it that nothing was done that a person could have missed
LONGEST_WHY = 200  # letters; all of it is in the event that tells of the end


class ConversationChange:
    """Put together on a snapshot; `conversation` is as it will be after what was told so far."""

    def __init__(self, snapshot: Snapshot, worker_id: str) -> None:
        self.snapshot = snapshot
        self.worker: Worker = snapshot.worker(worker_id)
        self.conversation: Conversation = snapshot.conversations.get(worker_id, Conversation())
        self.drafts: list[Draft] = []
        self._outbox: list[OutboxLine] = []
        self._active = self.worker.state is WorkerState.ACTIVE
        self._ended: TurnEnd | None = None
        self.over = False  # the run has ended: neither lines nor an activity follow

    @property
    def seq(self) -> int:
        """The number the next fact will have."""
        return self.snapshot.last_seq + len(self.drafts) + 1

    def tell(self, *facts: Fact) -> None:
        """Facts of this agent, in order."""
        for fact in facts:
            event = Event(self.seq, self.snapshot.updated_at, fact, self.worker.id, self.worker.role)
            self.conversation = fold_conversation(self.conversation, event)
            self.drafts.append(Draft(fact, self.worker.id, self.worker.role))
            if isinstance(fact, WorkerReady):
                self._active = True
            if isinstance(fact, TurnEnd):
                self._after_turn(fact)

    def begin_turn(self, order: Prompt, from_queue: bool) -> None:
        """The prompt and the turn it begins; the agent must be free."""
        if from_queue:
            id = order.prompt_id
            self.tell_others([Draft(queue.QueueSending(id=id)), Draft(queue.QueueSent(id=id))])
        self.tell(
            UserPrompt(
                text=order.text,
                prompt_id=order.prompt_id,
                image_ids=order.image_ids,
                sender=order.sender,
                origin=order.origin,
            ),
            TurnStart(prompt_id=order.prompt_id),
        )

    def tell_others(self, drafts: Sequence[Draft]) -> None:
        """Facts of the session, or of another worker."""
        self.drafts.extend(drafts)

    def say(self, *sayings: OutgoingLine) -> None:
        """Lines to the agent, each with its fact."""
        for saying in sayings:
            n = self.conversation.traffic.next_n
            self.tell(saying.fact(n))
            self._outbox.append(OutboxLine(self.worker.id, self.worker.run, _numbered(saying, n)))

    def end_terminals(self, reason: str) -> None:
        """What the agent runs in terminals ends with its turn, or with itself."""
        for terminal in terminals_of(self.snapshot, self.worker.id):
            if terminal.alive:
                self.drafts.append(Draft(WorkerTerminated(reason=reason), terminal.id, terminal.role))

    def fail(self, fact: WorkerFailed, *, blames_session: bool = True) -> None:
        """The end of the run against its will: with its turn, its terminals, and perhaps its session.

        Not with its session when it is about to be started again.
        """
        self.close_turn("error", fact.error)
        self.end_terminals("its agent ended")
        self.tell(fact)
        self.over = True
        if blames_session and not fact.again and self._is_founder and not self._answered():
            ending = commands.end_session(self.snapshot, SessionStatus.ERROR, "error", fact.error)
            told = {draft.worker_id for draft in self.drafts if isinstance(draft.fact, WorkerTerminated)}
            self.drafts += [d for d in ending if d.worker_id not in (self.worker.id, *told)]

    @property
    def _is_founder(self) -> bool:
        return self.snapshot.founder == self.worker.id

    def _answered(self) -> bool:
        """Whether the agent's first answer is among what is told here."""
        return any(
            draft.worker_id == self.worker.id and shows_agent_answer(draft.fact) for draft in self.drafts
        )

    def close_turn(self, stop_reason: str, error: str | None = None) -> None:
        """Everything that is open is closed, because nothing more will come."""
        self.tell(*cancel_open_items(self.conversation, by="bullpen"))
        if self.conversation.turn is not None:
            self.tell(TurnEnd(stop_reason=stop_reason, error=error))

    def end(self, fact: WorkerExited) -> None:
        """The end of the run by itself."""
        self.close_turn("cancelled")
        self.end_terminals("its agent ended")
        self.tell(fact)
        self.over = True

    def change(self, consumed: int | None = None, answer: RequestAnswer | None = None) -> Change:
        mark = None if consumed is None else Consumed(self.worker.id, self.worker.run, consumed)
        return Change(
            drafts=[*self.drafts, *self._activity()], outbox=self._outbox, consumed=mark, answer=answer
        )

    def _after_turn(self, end: TurnEnd) -> None:
        self._ended = end
        if end.failure or end.stop_reason == "cancelled":
            why = TURN_FAILED if end.failure else "the turn was cancelled"
            self.drafts += [Draft(fact) for fact in queue.pause_after_failed_turn(self.snapshot.queue, why)]

    def _activity(self) -> list[Draft]:
        if not self._active or self.over or self.worker.is_typed_to:  # what a screen shows is told apart
            return []
        now, why = activity_of(self.conversation, self.worker.activity, self._ended)
        if now is self.worker.activity:
            return []
        return [Draft(WorkerActivity(activity=now.value, why=why), self.worker.id, self.worker.role)]


def activity_of(conversation: Conversation, before: Activity, ended: TurnEnd | None) -> tuple[Activity, str]:
    """What an agent that lives is doing, and why we think so (R72)."""
    if conversation.asking:
        return Activity.ASKING, "a question is open"
    if conversation.turn is not None:
        return Activity.ACTIVE, "in a turn"
    if ended is not None and ended.failure:
        return Activity.IDLE, " ".join(ended.failure[:LONGEST_WHY].split())
    return Activity.IDLE, NOT_ASKED if before is Activity.UNKNOWN else "the turn is over"


def terminals_of(snapshot: Snapshot, agent_id: str) -> list[Worker]:
    """The terminals an agent ordered."""
    return [worker for worker in snapshot.workers.values() if worker.owner == agent_id]


def _numbered(saying: OutgoingLine, n: int) -> Callable[[int], bytes]:
    def make(number: int) -> bytes:
        if number != n:  # a line without a fact, or a fact without a line, came before
            raise Conflict(f"line {number} was told of as {n}")
        return saying.line(n)

    return make
