"""Build the changes that users order of an ACP agent: prompt, cancel, answer a question, set an option."""

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
from ..log.log import Change
from ..store.answers import PendingAnswer
from ..wire import acp_calls
from ..wire.acp_calls import OutgoingReply
from .conversation_change import ConversationChange

Images = Sequence[tuple[str, str]]  # media type and base64 of each
Files = Sequence[tuple[str, str]]  # name and URI of each


def send_prompt(
    snapshot: Snapshot,
    worker_id: str,
    order: Prompt,
    images: Images,
    files: Files = (),
    recap: str = "",
    from_queue: bool = False,
) -> ConversationChange:
    """Send a prompt and begin its turn. Raise Conflict if the agent is busy, Invalid if it takes no images.

    `recap` is a summary of the conversation for an agent whose own session is new.
    """
    commands.require_active(snapshot)
    change = ConversationChange(snapshot, worker_id)
    if not accepts_prompt(snapshot, change.worker):
        raise Conflict(f"the agent in role {change.worker.role} is busy")
    if images and not change.conversation.has_capability("promptCapabilities", "image"):
        raise Invalid(f"the agent in role {change.worker.role} takes no images")
    if block := change.conversation.block:  # text that came after the end of the last turn
        kind = AgentThought if block.type == AgentThought.type else AgentMessage
        change.record(kind(text="", partial=False, message_id=block.message_id))
    change.begin_turn(order, from_queue)
    text = f"{recap}\n\n{order.text}" if recap else order.text
    change.send(acp_calls.session_prompt(_acp_session_id(change), text, images, files))
    return change


def cancel_turn(snapshot: Snapshot, worker_id: str, by: str) -> ConversationChange:
    """Cancel the turn, its open questions and its terminals. The change is empty if no turn runs."""
    change = ConversationChange(snapshot, worker_id)
    conversation = change.conversation
    if conversation.turn is None or conversation.turn.cancelling:
        return change
    withdrawn = acp_calls.cancellation_replies(conversation)
    change.record(*cancel_open_items(conversation, by))
    change.send(acp_calls.session_cancel(_acp_session_id(change)), *withdrawn)
    change.end_terminals("the turn was cancelled")
    return change


def end_workers(
    snapshot: Snapshot, drafts: Sequence[Draft], answer: PendingAnswer[Snapshot] | None = None
) -> Change:
    """Record the end of workers, and send session/cancel to each agent among them whose turn may run."""
    ended_ids = [d.worker_id for d in drafts if isinstance(d.fact, WorkerTerminated | WorkerExited)]
    cancellations = [_cancellation(snapshot, worker_id) for worker_id in ended_ids if worker_id is not None]
    return Change(
        drafts=[*(draft for each in cancellations for draft in each.drafts), *drafts],
        outbox=[line for each in cancellations for line in each.outbox],
        answer=answer,
    )


def answer_permission(snapshot: Snapshot, permission_id: str, option_id: str, by: str) -> ConversationChange:
    """Answer a permission request of an agent with one of its options."""
    worker_id, fact = permissions.answer_permission(snapshot, permission_id, option_id, by)
    return _record_answer(snapshot, worker_id, fact, acp_calls.permission_result(option_id))


def refuse_permission(snapshot: Snapshot, permission_id: str, by: str) -> ConversationChange:
    """Answer with the mildest refusal that the agent offers; withdraw the question if it offers none."""
    worker_id, open = permissions.find_permission(snapshot, permission_id)
    refusal = first_option_of_kind(open.fact.options, "reject_once", "reject_always")
    if refusal is not None:
        return answer_permission(snapshot, permission_id, refusal, by)
    withdrawn = msgspec.structs.replace(open.fact, status="cancelled", by=by)
    return _record_answer(snapshot, worker_id, withdrawn, acp_calls.permission_result(None))


def fail_unresponsive_agent(snapshot: Snapshot, worker_id: str, seconds: float) -> ConversationChange:
    """Fail an agent that has not stopped its turn in time. A restart continues its conversation."""
    change = ConversationChange(snapshot, worker_id)
    change.close_turn("cancelled")
    error = f"it was cancelled and had not stopped {seconds:.0f} s later, so that it was ended; restart it"
    change.fail_run(WorkerFailed(error=error), may_fail_session=False)
    return change


def answer_question(
    snapshot: Snapshot, question_id: str, action: str, content: dict[str, Any] | None, by: str
) -> ConversationChange:
    """Answer a form of an agent: accept it with its content, or decline or cancel it."""
    worker_id, fact = permissions.answer_question(snapshot, question_id, action, content, by)
    return _record_answer(snapshot, worker_id, fact, acp_calls.question_result(fact.status, fact.answer))


def set_mode(snapshot: Snapshot, worker_id: str, mode_id: str) -> ConversationChange:
    """Set the mode of an agent, by its configuration option for modes if it has one."""
    change = _change_of_active_agent(snapshot, worker_id)
    if option := _option_of_category(change, "mode"):
        return _set_option(change, option, mode_id)
    change.send(acp_calls.set_mode(_acp_session_id(change), mode_id))
    return change


def set_model(snapshot: Snapshot, worker_id: str, model_id: str) -> ConversationChange:
    """Set the model of an agent, by its configuration option for models if it has one."""
    change = _change_of_active_agent(snapshot, worker_id)
    if option := _option_of_category(change, "model"):
        return _set_option(change, option, model_id)
    change.send(acp_calls.set_model(_acp_session_id(change), model_id))
    return change


def set_config_option(
    snapshot: Snapshot, worker_id: str, option_id: str, value: str | bool
) -> ConversationChange:
    """Set a configuration option of an agent, or raise Invalid if it has no such option."""
    change = _change_of_active_agent(snapshot, worker_id)
    session = change.conversation.session
    known = [option.get("id") for option in (session.config_options if session else None) or []]
    if option_id not in known:
        raise Invalid(f"the agent has the options {', '.join(map(str, known)) or 'none'}, not {option_id}")
    return _set_option(change, option_id, value)


def _cancellation(snapshot: Snapshot, worker_id: str) -> Change:
    """Return a change that sends session/cancel to an agent, or an empty one if that is not needed."""
    change = ConversationChange(snapshot, worker_id)
    id, turn = change.conversation.acp_session_id, change.conversation.turn
    cancelled = turn is not None and turn.cancelling
    speaks = change.worker.state is WorkerState.ACTIVE and not change.worker.is_typed_to
    if not speaks or id is None or cancelled:
        return Change()
    change.send(acp_calls.session_cancel(id))
    return change.build()


def _record_answer(snapshot: Snapshot, worker_id: str, fact: Any, result: Any) -> ConversationChange:
    """Record the answer to an agent's question, and send it as the result of the agent's request."""
    change = ConversationChange(snapshot, worker_id)
    request = change.conversation.traffic.asks.get(fact.id)
    change.record(fact)
    if request is not None:
        change.send(OutgoingReply(rpc_id=request.rpc_id, method=request.method, result=result, id=fact.id))
    return change


def _change_of_active_agent(snapshot: Snapshot, worker_id: str) -> ConversationChange:
    """Return a change without events. Raise Conflict unless the worker is an active agent that speaks ACP."""
    commands.require_active(snapshot)
    change = ConversationChange(snapshot, worker_id)
    if change.worker.type != "agent":
        raise Conflict(f"the worker in role {change.worker.role} is a {change.worker.type}, not an agent")
    if change.worker.is_typed_to:
        raise Conflict(f"the agent in role {change.worker.role} has only a terminal: choose there")
    if change.worker.state is not WorkerState.ACTIVE:
        raise Conflict(f"the agent in role {change.worker.role} is {change.worker.state}")
    return change


def _option_of_category(change: ConversationChange, category: str) -> str | None:
    """Return the id of the configuration option with this category; None if the agent has none."""
    session = change.conversation.session
    for option in (session.config_options if session else None) or []:
        match option:
            case {"id": str(id), "category": str(found)} if found == category:
                return id
    return None


def _set_option(change: ConversationChange, option_id: str, value: str | bool) -> ConversationChange:
    """Request another value of a configuration option."""
    change.send(acp_calls.set_config_option(_acp_session_id(change), option_id, value))
    return change


def _acp_session_id(change: ConversationChange) -> str:
    """Return the agent's own session id, or raise Conflict if it has none yet."""
    id = change.conversation.acp_session_id
    if id is None:
        raise Conflict(f"the agent in role {change.worker.role} has no session yet")
    return id
