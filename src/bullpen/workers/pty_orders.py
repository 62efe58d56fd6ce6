"""What a person orders of an agent in a terminal, as a change: prompt, cancel, and what its screen tells."""

import uuid

from ..domain import commands
from ..domain.conversation import AgentSession
from ..domain.conversation_state import Turn
from ..domain.errors import Conflict
from ..domain.events import WorkerActivity
from ..domain.prompts import Prompt, accepts_prompt
from ..domain.signs import JudgedActivity, TypingKeys
from ..domain.snapshot import Snapshot, Worker
from ..domain.states import Activity, WorkerState
from ..wire.keystrokes import TypingMode, interrupt
from .conversation_change import ConversationChange

AT_WORK = (Activity.ACTIVE, Activity.ASKING)


def prompt(
    snapshot: Snapshot, worker_id: str, order: Prompt, typing: TypingMode, from_queue: bool = False
) -> ConversationChange:
    """The prompt, the turn it begins, and what is typed for it."""
    commands.require_active(snapshot)
    exchange = ConversationChange(snapshot, worker_id)
    if not accepts_prompt(snapshot, exchange.worker):
        raise Conflict(f"the agent in role {exchange.worker.role} is busy")
    exchange.begin_turn(order, from_queue)
    exchange.say(*typing.prompt(order.text))
    _become(exchange, JudgedActivity(Activity.ACTIVE, "a prompt was sent"))
    return exchange


def cancel(snapshot: Snapshot, worker_id: str, keys: TypingKeys) -> ConversationChange:
    """The key that interrupts, once; at an empty prompt the same key might end the program."""
    exchange = ConversationChange(snapshot, worker_id)
    turn, worker = exchange.conversation.turn, exchange.worker
    is_cancelling = turn is not None and turn.cancelling
    if worker.state is WorkerState.ACTIVE and worker.activity in AT_WORK and not is_cancelling:
        exchange.say(interrupt(keys))
    return exchange


def tell_activity(
    exchange: ConversationChange, verdict: JudgedActivity, turn: Turn | None, ordered: bool = False
) -> None:
    """What the agent does by now; nothing when the judgement was of another turn.

    `ordered`: a person has just typed what to do.
    """
    now = exchange.conversation.turn
    same_turn = (now.prompt_id if now else None) == (turn.prompt_id if turn else None)
    if exchange.worker.state is not WorkerState.ACTIVE or not same_turn:
        return
    worker = exchange.worker
    if ordered and verdict.activity is Activity.ACTIVE:
        _begin_conversation(exchange)
    if worker.activity is verdict.activity:
        return
    by_hand = now is None and (worker.by_hand or (ordered and worker.activity is Activity.IDLE))
    if verdict.activity is Activity.IDLE and now is not None:
        exchange.close_turn("cancelled" if now.cancelling else "end_turn")
    _become(exchange, verdict, by_hand)


def new_session_id(worker: Worker) -> str:
    """The name of the conversation that begins with this run, the same however often one asks."""
    return str(uuid.uuid5(uuid.NAMESPACE_OID, f"{worker.id}.{worker.run}"))


def _become(exchange: ConversationChange, verdict: JudgedActivity, by_hand: bool = False) -> None:
    """An agent that has come to work after its prompt has a conversation that can be gone back to."""
    worker = exchange.worker
    begins = verdict.activity is Activity.ACTIVE and worker.activity is not Activity.UNKNOWN
    if begins:
        _begin_conversation(exchange)
    exchange.tell(WorkerActivity(activity=verdict.activity.value, why=verdict.why, by_hand=by_hand))


def _begin_conversation(exchange: ConversationChange) -> None:
    """Record the conversation of this run, which a restart can go back to, unless one is recorded."""
    if exchange.conversation.session is None:
        exchange.tell(AgentSession(acp_session_id=new_session_id(exchange.worker), how="new"))
