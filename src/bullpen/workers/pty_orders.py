"""Build the changes of an agent in a terminal: its prompts, its cancellation, and its activity."""

import uuid

from ..domain import commands
from ..domain.conversation import AgentSession
from ..domain.conversation_state import Turn
from ..domain.errors import Conflict
from ..domain.events import WorkerActivity
from ..domain.prompts import Prompt, accepts_prompt
from ..domain.screen_patterns import JudgedActivity, TypingKeys
from ..domain.snapshot import Snapshot, Worker
from ..domain.states import Activity, WorkerState
from ..wire.keystrokes import TypingMode, interrupt
from .conversation_change import ConversationChange

BUSY = (Activity.ACTIVE, Activity.ASKING)


def send_prompt(
    snapshot: Snapshot, worker_id: str, order: Prompt, typing: TypingMode, from_queue: bool = False
) -> ConversationChange:
    """Record a prompt and its turn, and type it. Raise Conflict if the agent is busy."""
    commands.require_active(snapshot)
    change = ConversationChange(snapshot, worker_id)
    if not accepts_prompt(snapshot, change.worker):
        raise Conflict(f"the agent in role {change.worker.role} is busy")
    change.begin_turn(order, from_queue)
    change.send(*typing.prompt(order.text))
    _set_activity(change, JudgedActivity(Activity.ACTIVE, "a prompt was sent"))
    return change


def cancel_turn(snapshot: Snapshot, worker_id: str, keys: TypingKeys) -> ConversationChange:
    """Type the key that interrupts, once: at an idle prompt the same key might end the program."""
    change = ConversationChange(snapshot, worker_id)
    turn, worker = change.conversation.turn, change.worker
    is_cancelling = turn is not None and turn.cancelling
    if worker.state is WorkerState.ACTIVE and worker.activity in BUSY and not is_cancelling:
        change.send(interrupt(keys))
    return change


def record_activity(
    change: ConversationChange, verdict: JudgedActivity, turn: Turn | None, typed_by_user: bool = False
) -> None:
    """Record the judged activity, unless it was judged in another turn.

    `typed_by_user`: a user has just typed an order into the terminal.
    """
    now = change.conversation.turn
    same_turn = (now.prompt_id if now else None) == (turn.prompt_id if turn else None)
    if change.worker.state is not WorkerState.ACTIVE or not same_turn:
        return
    worker = change.worker
    if typed_by_user and verdict.activity is Activity.ACTIVE:
        _begin_conversation(change)
    if worker.activity is verdict.activity:
        return
    by_hand = now is None and (worker.by_hand or (typed_by_user and worker.activity is Activity.IDLE))
    if verdict.activity is Activity.IDLE and now is not None:
        change.close_turn("cancelled" if now.cancelling else "end_turn")
    _set_activity(change, verdict, by_hand)


def new_session_id(worker: Worker) -> str:
    """Return the id of the conversation that begins with this run; it is the same at each call."""
    return str(uuid.uuid5(uuid.NAMESPACE_OID, f"{worker.id}.{worker.run}"))


def _set_activity(change: ConversationChange, verdict: JudgedActivity, by_hand: bool = False) -> None:
    """Record an activity; the first work after the start begins a conversation that can be continued."""
    worker = change.worker
    begins_work = verdict.activity is Activity.ACTIVE and worker.activity is not Activity.UNKNOWN
    if begins_work:
        _begin_conversation(change)
    change.record(WorkerActivity(activity=verdict.activity.value, why=verdict.why, by_hand=by_hand))


def _begin_conversation(change: ConversationChange) -> None:
    """Record the conversation of this run, which a restart can continue, unless one is recorded."""
    if change.conversation.session is None:
        change.record(AgentSession(acp_session_id=new_session_id(change.worker), how="new"))
