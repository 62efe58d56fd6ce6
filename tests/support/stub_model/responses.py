"""The protocol Responses of OpenAI, which codex uses."""

import json
import uuid
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import Any

from .answer_parts import ShellTool, ToolCall, WriteTool
from .dialect import Json, Message, Request, text_of

USAGE = {
    "input_tokens": 100,
    "input_tokens_details": {"cached_tokens": 0},
    "output_tokens": 10,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": 110,
}


class Responses:
    def read(self, path: str, body: Json) -> Request:
        given = body.get("input", [])
        items = [{"role": "user", "content": given}] if isinstance(given, str) else given
        messages = [each for item in items for each in _messages(item)]
        tools = frozenset(each["name"] for each in body.get("tools") or [] if "name" in each)
        return Request(messages, tools, bool(body.get("stream")))

    def use(self, part: WriteTool | ShellTool) -> ToolCall:
        match part:
            case WriteTool(path, content):
                lines = "".join(f"+{line}\n" for line in content.splitlines())
                patch = f"*** Begin Patch\n*** Add File: {path}\n{lines}*** End Patch\n"
                return ToolCall("apply_patch", patch)
            case ShellTool(command):
                escalation = {"sandbox_permissions": "require_escalated", "justification": "it has to"}
                return ToolCall("exec_command", {"cmd": command, **escalation})

    async def stream(self, pieces: AsyncIterator[str | ToolCall]) -> AsyncIterator[Json]:
        yield _event("response.created", response=_response("in_progress", []))
        done: list[Json] = []
        text: list[str] = []
        message = _message("")
        async for piece in pieces:
            match piece:
                case str(word):
                    if not text:
                        yield _event(
                            "response.output_item.added", output_index=0, item=_without_content(message)
                        )
                    text.append(word)
                    position = {"item_id": message["id"], "output_index": 0, "content_index": 0}
                    yield _event("response.output_text.delta", **position, delta=word)
                case ToolCall():
                    for event in _end_of_message(message, text, done):
                        yield event
                    text, item = [], _call(piece)
                    done.append(item)
                    yield _event("response.output_item.done", output_index=len(done) - 1, item=item)
        for event in _end_of_message(message, text, done):
            yield event
        yield _event("response.completed", response=_response("completed", done))

    def whole(self, text: str) -> Json:
        return _response("completed", [_message(text)])


def _messages(item: Json) -> Iterator[Message]:
    match item:
        case {"type": "function_call_output" | "custom_tool_call_output", "output": output}:
            yield Message("tool", text_of(output))
        case {"role": "user", "content": list(parts)}:
            yield from (Message("user", text_of(part)) for part in parts)
        case {"role": str(role), "content": content}:
            yield Message("model" if role == "assistant" else "system", text_of(content))


def _end_of_message(message: Json, text: Iterable[str], done: list[Json]) -> Iterator[Json]:
    """Yield the end of the text message, unless the text is empty."""
    if text := "".join(text):
        item = {**message, "content": _message(text)["content"]}
        done.append(item)
        yield _event("response.output_item.done", output_index=0, item=item)


def _without_content(item: Json) -> Json:
    return {**item, "status": "in_progress", "content": []}


def _message(text: str) -> Json:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {
        "type": "message",
        "id": f"msg_{uuid.uuid4().hex}",
        "status": "completed",
        "role": "assistant",
        "content": content,
    }


def _call(use: ToolCall) -> Json:
    named = {"id": f"call_{uuid.uuid4().hex}", "call_id": uuid.uuid4().hex, "name": use.tool}
    if isinstance(use.arguments, str):
        return {"type": "custom_tool_call", **named, "input": use.arguments, "status": "completed"}
    return {
        "type": "function_call",
        **named,
        "arguments": json.dumps(use.arguments),
        "status": "completed",
    }


def _response(status: str, output: list[Json]) -> Json:
    usage = USAGE if status == "completed" else None
    return {
        "id": "resp_stub",
        "object": "response",
        "created_at": 0,
        "model": "stub",
        "status": status,
        "output": output,
        "usage": usage,
    }


def _event(type: str, **data: Any) -> Json:
    return {"type": type, **data}
