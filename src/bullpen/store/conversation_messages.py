"""The messages of a conversation (R26-R29): what of the events a person reads, and in which role."""

from collections.abc import Callable, Iterator
from typing import Any

from msgspec import UNSET, Struct

from ..domain.conversation import AgentMessage, Plan, ToolCall, ToolCallUpdate, TurnEnd, UserPrompt
from ..domain.conversation_state import Conversation
from ..domain.events import Error, Fact, SessionEnd, WorkerFailed
from ..domain.reasons import session_end_text
from ..domain.tool_calls import FINISHED, Tools, merge_tool_call, with_tool_call
from .append import Append

_TOLD_OF_TOOLS = (ToolCall, ToolCallUpdate)
_NO_TOOLS = Conversation().tools


class Message(Struct, frozen=True, gc=False):
    role: str
    content: dict[str, Any]


def messages_of(append: Append) -> Iterator[tuple[int, int, Message]]:
    """The messages the events of an append come to, each with its seq and time."""
    tools = {id: state.tools for id, state in append.before.conversations.items()}
    for entry in append.entries:
        event = entry.event
        fact = event.fact
        if isinstance(fact, _TOLD_OF_TOOLS):
            known = tools.get(event.worker_id or "", _NO_TOOLS)
            message = _tool(fact, known)
            if event.worker_id:
                tools[event.worker_id] = with_tool_call(known, fact.call)
        elif show := _SHOWN.get(type(fact)):
            message = show(fact)
        else:
            continue
        if message:
            yield event.seq, event.timestamp, message


def _prompt(fact: UserPrompt) -> Message:
    content: dict[str, Any] = {"type": "text", "text": fact.text}
    if fact.image_ids:
        content["imageIds"] = list(fact.image_ids)
    if fact.origin is not UNSET:
        content["from"] = fact.origin
    return Message("user", content)


def _said(fact: AgentMessage) -> Message:
    return Message("agent", {"type": "text", "text": fact.text, "partial": fact.partial})


def _plan(fact: Plan) -> Message:
    return Message("system", {"type": "plan", "steps": fact.entries})


def _turn_end(fact: TurnEnd) -> Message | None:
    return _notice("the turn was cancelled" if fact.stop_reason == "cancelled" else fact.failure)


def _notice(text: str | None) -> Message | None:
    """What a person should know went another way."""
    return Message("system", {"type": "text", "text": text}) if text else None


# Most events are no messages: asked by class, these cost nothing.
_SHOWN: dict[type[Fact], Callable[[Any], Message | None]] = {
    UserPrompt: _prompt,
    AgentMessage: _said,
    Plan: _plan,
    TurnEnd: _turn_end,
    SessionEnd: lambda fact: _notice(fact.detail or session_end_text(fact.status, fact.reason)),
    WorkerFailed: lambda fact: _notice(f"the worker failed: {fact.error}"),
    Error: lambda fact: _notice(fact.message),
}


def _tool(fact: ToolCall | ToolCallUpdate, tools: Tools) -> Message | None:
    """A call when it is announced and when it is finished; what is told of it meanwhile is in the events."""
    id = fact.call.get("toolCallId")
    known = tools.get(id) if isinstance(id, str) else None
    call = merge_tool_call(known, fact.call)
    finished = call["status"] in FINISHED
    if known is not None and not finished:
        return None
    if known is None and isinstance(fact, ToolCallUpdate) and not finished:
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
    return Message("system", content)
