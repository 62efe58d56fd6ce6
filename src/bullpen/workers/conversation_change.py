"""Build one change of the conversation with an agent: its events, and the lines to send to the agent.

Each line is recorded by one event, so its number is known before the store assigns it. The agent's activity
follows from its conversation; a change that alters it records that too.
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
from ..log.log import Change, ConsumedOffset, OutboxLine
from ..store.answers import PendingAnswer
from ..wire.acp_calls import OutgoingLine

NOT_ASKED = "waits for a prompt"  # the page compares this text: the agent has done nothing yet
MAX_REASON_LENGTH = 200  # characters; the event of the turn's end has the whole text


class ConversationChange:
    """A change that is built on a snapshot; `conversation` is its state after what was recorded so far."""

    def __init__(self, snapshot: Snapshot, worker_id: str) -> None:
        self.snapshot = snapshot
        self.worker: Worker = snapshot.worker(worker_id)
        self.conversation: Conversation = snapshot.conversations.get(worker_id, Conversation())
        self.drafts: list[Draft] = []
        self._outbox: list[OutboxLine] = []
        self._active = self.worker.state is WorkerState.ACTIVE
        self._turn_end: TurnEnd | None = None
        self.run_ended = False  # neither lines nor an activity follow

    @property
    def seq(self) -> int:
        """The number that the next event will have."""
        return self.snapshot.last_seq + len(self.drafts) + 1

    def record(self, *facts: Fact) -> None:
        """Add facts about this agent, in order, and fold them into `conversation`."""
        for fact in facts:
            event = Event(self.seq, self.snapshot.updated_at, fact, self.worker.id, self.worker.role)
            self.conversation = fold_conversation(self.conversation, event)
            self.drafts.append(Draft(fact, self.worker.id, self.worker.role))
            if isinstance(fact, WorkerReady):
                self._active = True
            if isinstance(fact, TurnEnd):
                self._note_turn_end(fact)

    def begin_turn(self, order: Prompt, from_queue: bool) -> None:
        """Record a prompt and the turn that begins with it. The agent must be idle."""
        if from_queue:
            id = order.prompt_id
            self.record_drafts([Draft(queue.QueueSending(id=id)), Draft(queue.QueueSent(id=id))])
        self.record(
            UserPrompt(
                text=order.text,
                prompt_id=order.prompt_id,
                image_ids=order.image_ids,
                sender=order.sender,
                origin=order.origin,
            ),
            TurnStart(prompt_id=order.prompt_id),
        )

    def record_drafts(self, drafts: Sequence[Draft]) -> None:
        """Add facts about the session or about another worker."""
        self.drafts.extend(drafts)

    def send(self, *lines: OutgoingLine) -> None:
        """Add lines for the agent, each with the fact that records it."""
        for outgoing in lines:
            n = self.conversation.traffic.next_n
            self.record(outgoing.fact(n))
            self._outbox.append(OutboxLine(self.worker.id, self.worker.run, _line_maker(outgoing, n)))

    def end_terminals(self, reason: str) -> None:
        """Terminate the terminals that this agent has started."""
        for terminal in terminals_of(self.snapshot, self.worker.id):
            if terminal.alive:
                self.drafts.append(Draft(WorkerTerminated(reason=reason), terminal.id, terminal.role))

    def fail_run(self, fact: WorkerFailed, *, may_fail_session: bool = True) -> None:
        """Record that the run failed, which also ends its turn and its terminals.

        The session fails too if this is the agent it was created with, which has not answered and is not
        about to be restarted.
        """
        self.close_turn("error", fact.error)
        self.end_terminals("its agent ended")
        self.record(fact)
        self.run_ended = True
        if may_fail_session and not fact.again and self._is_founder and not self._answered():
            ending = commands.end_session(self.snapshot, SessionStatus.ERROR, "error", fact.error)
            terminated = {
                draft.worker_id for draft in self.drafts if isinstance(draft.fact, WorkerTerminated)
            }
            self.drafts += [d for d in ending if d.worker_id not in (self.worker.id, *terminated)]

    @property
    def _is_founder(self) -> bool:
        """Whether the session was created with this agent."""
        return self.snapshot.founder == self.worker.id

    def _answered(self) -> bool:
        """Return whether this change records the agent's first answer."""
        return any(
            draft.worker_id == self.worker.id and shows_agent_answer(draft.fact) for draft in self.drafts
        )

    def close_turn(self, stop_reason: str, error: str | None = None) -> None:
        """End the turn if one runs, and cancel open permissions and questions: no more output will come."""
        self.record(*cancel_open_items(self.conversation, by="bullpen"))
        if self.conversation.turn is not None:
            self.record(TurnEnd(stop_reason=stop_reason, error=error))

    def end_run(self, fact: WorkerExited) -> None:
        """Record that the agent exited by itself, which also ends its turn and its terminals."""
        self.close_turn("cancelled")
        self.end_terminals("its agent ended")
        self.record(fact)
        self.run_ended = True

    def build(self, consumed: int | None = None, answer: PendingAnswer[Snapshot] | None = None) -> Change:
        """Return the change for the log.

        `consumed`: the offset up to which the agent's output is processed. `answer`: the stored answer of the
        request that caused the change.
        """
        mark = None if consumed is None else ConsumedOffset(self.worker.id, self.worker.run, consumed)
        return Change(
            drafts=[*self.drafts, *self._activity()], outbox=self._outbox, consumed=mark, answer=answer
        )

    def _note_turn_end(self, end: TurnEnd) -> None:
        """Pause the message queue if the turn failed or was cancelled."""
        self._turn_end = end
        if end.failure or end.stop_reason == "cancelled":
            why = TURN_FAILED if end.failure else "the turn was cancelled"
            self.drafts += [Draft(fact) for fact in queue.pause_after_failed_turn(self.snapshot.queue, why)]

    def _activity(self) -> list[Draft]:
        """Return the fact of a new activity, if it is another one."""
        if not self._active or self.run_ended or self.worker.is_typed_to:  # the screen tells it: pty_watch.py
            return []
        now, reason = activity_of(self.conversation, self.worker.activity, self._turn_end)
        if now is self.worker.activity:
            return []
        return [Draft(WorkerActivity(activity=now.value, why=reason), self.worker.id, self.worker.role)]


def activity_of(
    conversation: Conversation, before: Activity, turn_end: TurnEnd | None
) -> tuple[Activity, str]:
    """Return the activity of a running agent that speaks ACP, and the reason for it."""
    if conversation.asking:
        return Activity.ASKING, "waits for an answer"
    if conversation.turn is not None:
        return Activity.ACTIVE, "works on a prompt"
    if turn_end is not None and turn_end.failure:
        return Activity.IDLE, " ".join(turn_end.failure[:MAX_REASON_LENGTH].split())
    return Activity.IDLE, NOT_ASKED if before is Activity.UNKNOWN else "has finished its turn"


def terminals_of(snapshot: Snapshot, agent_id: str) -> list[Worker]:
    """Return the terminals that an agent has started."""
    return [worker for worker in snapshot.workers.values() if worker.owner == agent_id]


def _line_maker(outgoing: OutgoingLine, n: int) -> Callable[[int], bytes]:
    """Return a function that encodes the line, or raises Conflict if the store assigned another number."""

    def make(number: int) -> bytes:
        if number != n:  # an earlier line has no event, or an earlier event no line
            raise Conflict(f"line {number} was recorded as {n}")
        return outgoing.line(n)

    return make
