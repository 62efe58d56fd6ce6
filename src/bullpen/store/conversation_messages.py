"""Project events to messages: the part of a conversation that the messages API shows."""

from collections.abc import Callable, Iterator
from typing import Any

from msgspec import UNSET, Struct

from ..domain.conversation import AgentMessage, Plan, ToolCall, ToolCallUpdate, TurnEnd, UserPrompt
from ..domain.conversation_state import Conversation, fold_conversation
from ..domain.events import Error, Fact, SessionEnd, SessionReopened, WorkerFailed
from ..domain.reasons import session_end_text
from ..domain.tool_calls import FINISHED, merge_tool_call, tool_call_id
from .append import Append

_TOOL_FACTS = (ToolCall, ToolCallUpdate)
_NO_CONVERSATION = Conversation()


class Message(Struct, frozen=True, gc=False):
    """A message with its role (user, agent or system) and its content as JSON.

    `replaces` is the number of the message whose content it fills in: that of a tool call that has finished.
    """

    role: str
    content: dict[str, Any]
    replaces: int | None = None


def messages_of(append: Append) -> Iterator[tuple[int, int, Message]]:
    """Yield the messages in the events of an append as (seq, timestamp, message)."""
    conversations = dict(append.before.conversations)
    for entry in append.entries:
        event = entry.event
        fact = event.fact
        if isinstance(fact, _TOOL_FACTS):
            conversation = conversations.get(event.worker_id or "", _NO_CONVERSATION)
            message = _tool_call(fact, conversation)
            if event.worker_id:
                conversations[event.worker_id] = fold_conversation(conversation, event)
        elif make_message := _MESSAGES.get(type(fact)):
            message = make_message(fact)
        else:
            continue
        if message:
            yield event.seq, event.timestamp, message


def _prompt(fact: UserPrompt) -> Message:
    """Return the user message of a prompt."""
    content: dict[str, Any] = {"type": "text", "text": fact.text}
    if fact.image_ids:
        content["imageIds"] = list(fact.image_ids)
    if fact.origin is not UNSET:
        content["from"] = fact.origin
    return Message("user", content)


def _agent_message(fact: AgentMessage) -> Message:
    """Return the agent message of a piece of answer."""
    return Message("agent", {"type": "text", "text": fact.text, "partial": fact.partial})


def _plan(fact: Plan) -> Message:
    """Return the system message of a plan."""
    return Message("system", {"type": "plan", "steps": fact.entries})


def _turn_end(fact: TurnEnd) -> Message | None:
    """Return a system message if the turn failed or was cancelled, else None."""
    return _notice("the turn was cancelled" if fact.stop_reason == "cancelled" else fact.failure)


def _notice(text: str | None) -> Message | None:
    """Return a system message, or None without text."""
    return Message("system", {"type": "text", "text": text}) if text else None


# By class, because most events are no messages and must cost little.
_MESSAGES: dict[type[Fact], Callable[[Any], Message | None]] = {
    UserPrompt: _prompt,
    AgentMessage: _agent_message,
    Plan: _plan,
    TurnEnd: _turn_end,
    SessionEnd: lambda fact: _notice(fact.detail or session_end_text(fact.status, fact.reason)),
    SessionReopened: lambda _: _notice("the session is continued"),
    WorkerFailed: lambda fact: _notice(f"the worker failed: {fact.error}"),
    Error: lambda fact: _notice(fact.message),
}


def _tool_call(fact: ToolCall | ToolCallUpdate, conversation: Conversation) -> Message | None:
    """Return the message of a tool call that is announced, or finished and now has a result; else None."""
    id = tool_call_id(fact.call)
    call = merge_tool_call(conversation.tools.get(id or ""), fact.call)
    announced = conversation.tool_messages.get(id or "")
    finished = call["status"] in FINISHED
    if not finished and (announced is not None or isinstance(fact, ToolCallUpdate)):
        return None
    result = call.get("rawOutput", call.get("content")) if finished else None
    content = {
        "type": "tool",
        "tool": call.get("title") or call.get("kind") or "tool",
        "args": call.get("rawInput", {}),
        "result": result if result is not None or not finished else {},
        "status": call["status"],
        "toolCallId": id,
    }
    return Message("system", content, replaces=announced)
