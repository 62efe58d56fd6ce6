"""The messages of a conversation (R26-R29): what of the events a person reads, and in which role."""

from collections.abc import Iterator
from typing import Any

from msgspec import UNSET, Struct

from ..domain.conversation import AgentMessage, Plan, ToolCall, ToolCallUpdate, TurnEnd, UserPrompt
from ..domain.conversation_state import Conversation
from ..domain.events import Error, Event, Fact, SessionEnd, WorkerFailed
from ..domain.tool_calls import FINISHED, Tools, merged, with_tool_call
from .append import Append

_TOLD_OF_TOOLS = (ToolCall, ToolCallUpdate)
_NO_TOOLS = Conversation().tools


class Message(Struct, frozen=True):
    role: str
    content: dict[str, Any]


def messages_of(append: Append) -> Iterator[tuple[int, int, Message]]:
    """The messages the events of an append come to, each with its seq and time."""
    tools = {id: state.tools for id, state in append.before.conversations.items()}
    for entry in append.entries:
        event = entry.event
        known = tools.get(event.worker_id or "", _NO_TOOLS)
        if message := _message(event, known):
            yield event.seq, event.timestamp, message
        if isinstance(event.fact, _TOLD_OF_TOOLS) and event.worker_id:
            tools[event.worker_id] = with_tool_call(known, event.fact.call)


def _message(event: Event, tools: Tools) -> Message | None:
    match event.fact:
        case UserPrompt() as fact:
            content: dict[str, Any] = {"type": "text", "text": fact.text}
            if fact.image_ids:
                content["imageIds"] = list(fact.image_ids)
            if fact.origin is not UNSET:
                content["from"] = fact.origin
            return Message("user", content)
        case AgentMessage() as fact:
            return Message("agent", {"type": "text", "text": fact.text, "partial": fact.partial})
        case Plan() as fact:
            return Message("system", {"type": "plan", "steps": fact.entries})
        case ToolCall() | ToolCallUpdate() as fact:
            return _tool(fact, tools)
        case fact:
            text = _notice(fact)
            return Message("system", {"type": "text", "text": text}) if text else None


def _notice(fact: Fact) -> str | None:
    """What a person should know went another way."""
    match fact:
        case SessionEnd():
            return fact.detail or f"{fact.status}: {fact.reason}"
        case TurnEnd() if fact.stop_reason == "cancelled":
            return "the turn was cancelled"
        case TurnEnd():
            return fact.failure
        case WorkerFailed():
            return f"the worker failed: {fact.error}"
        case Error():
            return fact.message
        case _:
            return None


def _tool(fact: ToolCall | ToolCallUpdate, tools: Tools) -> Message | None:
    """A call when it is announced and when it is finished; what is told of it meanwhile is in the events."""
    id = fact.call.get("toolCallId")
    known = tools.get(id) if isinstance(id, str) else None
    call = merged(known, fact.call)
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
