"""What a person orders of an agent, as a change: prompt, cancel, answer, set."""

from collections.abc import Sequence
from typing import Any

import msgspec

from ..domain import commands, permissions
from ..domain.conversation import AgentMessage, AgentThought
from ..domain.conversation_rules import cancel_open_items, first_option_of_kind
from ..domain.errors import Conflict, Invalid
from ..domain.events import Draft, WorkerExited, WorkerFailed, WorkerTerminated
from ..domain.prompts import Prompt, accepts_prompt
from ..domain.snapshot import Snapshot
from ..domain.states import WorkerState
from ..log.log import Change, RequestAnswer
from ..wire import acp_calls
from ..wire.acp_calls import OutgoingReply
from .conversation_change import ConversationChange

Images = Sequence[tuple[str, str]]  # each as its type and its base64


def prompt(
    snapshot: Snapshot,
    worker_id: str,
    order: Prompt,
    images: Images,
    recap: str = "",
    from_queue: bool = False,
) -> ConversationChange:
    """The prompt and the turn it begins; the agent must be free."""
    commands.require_active(snapshot)
    exchange = ConversationChange(snapshot, worker_id)
    if not accepts_prompt(snapshot, exchange.worker):
        raise Conflict(f"the agent in role {exchange.worker.role} is busy")
    if images and not exchange.conversation.has_capability("promptCapabilities", "image"):
        raise Invalid(f"the agent in role {exchange.worker.role} takes no images")
    if block := exchange.conversation.block:  # text after the last turn's end, which nobody closed
        kind = AgentThought if block.type == AgentThought.type else AgentMessage
        exchange.tell(kind(text="", partial=False, message_id=block.message_id))
    exchange.begin_turn(order, from_queue)
    text = f"{recap}\n\n{order.text}" if recap else order.text
    exchange.say(acp_calls.session_prompt(_acp_session_id(exchange), text, images))
    return exchange


def cancel(snapshot: Snapshot, worker_id: str, by: str) -> ConversationChange:
    """Stops the turn: what is open is closed by us, what the agent ran for it is ended. None: nothing."""
    exchange = ConversationChange(snapshot, worker_id)
    conversation = exchange.conversation
    if conversation.turn is None or conversation.turn.cancelling:
        return exchange
    withdrawn = acp_calls.withdrawn(conversation)
    exchange.tell(*cancel_open_items(conversation, by))
    exchange.say(acp_calls.session_cancel(_acp_session_id(exchange)), *withdrawn)
    exchange.end_terminals("the turn was cancelled")
    return exchange


def ending(snapshot: Snapshot, drafts: Sequence[Draft], answer: RequestAnswer | None = None) -> Change:
    """The end of workers, with a last word to each agent among them: it is told to cancel (R35, R38)."""
    ended = [d.worker_id for d in drafts if isinstance(d.fact, WorkerTerminated | WorkerExited)]
    farewells = [_farewell(snapshot, worker_id) for worker_id in ended if worker_id is not None]
    return Change(
        drafts=[*(draft for each in farewells for draft in each.drafts), *drafts],
        outbox=[line for each in farewells for line in each.outbox],
        answer=answer,
    )


def answer_permission(snapshot: Snapshot, permission_id: str, option_id: str, by: str) -> ConversationChange:
    worker_id, fact = permissions.answer_permission(snapshot, permission_id, option_id, by)
    return _answered(snapshot, worker_id, fact, acp_calls.permission_result(option_id))


def refuse_permission(snapshot: Snapshot, permission_id: str, by: str) -> ConversationChange:
    """The mildest refusal that is offered; where none is, the question is withdrawn."""
    worker_id, open = permissions.find_permission(snapshot, permission_id)
    refusal = first_option_of_kind(open.fact.options, "reject_once", "reject_always")
    if refusal is not None:
        return answer_permission(snapshot, permission_id, refusal, by)
    withdrawn = msgspec.structs.replace(open.fact, status="cancelled", by=by)
    return _answered(snapshot, worker_id, withdrawn, acp_calls.permission_result(None))


def give_up(snapshot: Snapshot, worker_id: str, seconds: float) -> ConversationChange:
    """The end of an agent that would not stop; it can be restarted and goes back to its conversation."""
    exchange = ConversationChange(snapshot, worker_id)
    exchange.close_turn("cancelled")
    error = f"it was cancelled and had not stopped {seconds:.0f} s later, so that it was ended; restart it"
    exchange.fail(WorkerFailed(error=error), blames_session=False)
    return exchange


def answer_question(
    snapshot: Snapshot, question_id: str, action: str, content: dict[str, Any] | None, by: str
) -> ConversationChange:
    worker_id, fact = permissions.answer_question(snapshot, question_id, action, content, by)
    return _answered(snapshot, worker_id, fact, acp_calls.question_result(fact.status, fact.answer))


def set_mode(snapshot: Snapshot, worker_id: str, mode_id: str) -> ConversationChange:
    """Where an agent has an option for its modes, that is what counts."""
    exchange = _settable(snapshot, worker_id)
    if option := _option_of_category(exchange, "mode"):
        return _with_option(exchange, option, mode_id)
    exchange.say(acp_calls.set_mode(_acp_session_id(exchange), mode_id))
    return exchange


def set_model(snapshot: Snapshot, worker_id: str, model_id: str) -> ConversationChange:
    exchange = _settable(snapshot, worker_id)
    if option := _option_of_category(exchange, "model"):
        return _with_option(exchange, option, model_id)
    exchange.say(acp_calls.set_model(_acp_session_id(exchange), model_id))
    return exchange


def set_config_option(
    snapshot: Snapshot, worker_id: str, option_id: str, value: str | bool
) -> ConversationChange:
    exchange = _settable(snapshot, worker_id)
    session = exchange.conversation.session
    known = [option.get("id") for option in (session.config_options if session else None) or []]
    if option_id not in known:
        raise Invalid(f"the agent has the options {', '.join(map(str, known)) or 'none'}, not {option_id}")
    return _with_option(exchange, option_id, value)


def _farewell(snapshot: Snapshot, worker_id: str) -> Change:
    exchange = ConversationChange(snapshot, worker_id)
    id, turn = exchange.conversation.acp_session_id, exchange.conversation.turn
    cancelled = turn is not None and turn.cancelling
    speaks = exchange.worker.state is WorkerState.ACTIVE and not exchange.worker.is_typed_to
    if not speaks or id is None or cancelled:
        return Change()
    exchange.say(acp_calls.session_cancel(id))
    return exchange.change()


def _answered(snapshot: Snapshot, worker_id: str, fact: Any, result: Any) -> ConversationChange:
    exchange = ConversationChange(snapshot, worker_id)
    ask = exchange.conversation.traffic.asks.get(fact.id)
    exchange.tell(fact)
    if ask is not None:
        exchange.say(OutgoingReply(rpc_id=ask.rpc_id, method=ask.method, result=result, id=fact.id))
    return exchange


def _settable(snapshot: Snapshot, worker_id: str) -> ConversationChange:
    commands.require_active(snapshot)
    exchange = ConversationChange(snapshot, worker_id)
    if exchange.worker.type != "agent":
        raise Conflict(f"the worker in role {exchange.worker.role} is a {exchange.worker.type}, not an agent")
    if exchange.worker.is_typed_to:
        raise Conflict(f"the agent in role {exchange.worker.role} has only a terminal: choose there")
    if exchange.worker.state is not WorkerState.ACTIVE:
        raise Conflict(f"the agent in role {exchange.worker.role} is {exchange.worker.state}")
    return exchange


def _option_of_category(exchange: ConversationChange, category: str) -> str | None:
    session = exchange.conversation.session
    for option in (session.config_options if session else None) or []:
        match option:
            case {"id": str(id), "category": str(found)} if found == category:
                return id
    return None


def _with_option(exchange: ConversationChange, option_id: str, value: str | bool) -> ConversationChange:
    exchange.say(acp_calls.set_config_option(_acp_session_id(exchange), option_id, value))
    return exchange


def _acp_session_id(exchange: ConversationChange) -> str:
    id = exchange.conversation.acp_session_id
    if id is None:
        raise Conflict(f"the agent in role {exchange.worker.role} has no session yet")
    return id
