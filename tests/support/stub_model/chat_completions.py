"""The protocol Chat Completions of OpenAI, which opencode uses."""

import json
import uuid
from collections.abc import AsyncIterator
from typing import Any, Literal

from .answer_parts import ShellTool, ToolCall, WriteTool
from .dialect import Json, Message, Request, text_of

ROLES: dict[str, Literal["system", "user", "model", "tool"]] = {
    "user": "user",
    "assistant": "model",
    "tool": "tool",
}
USAGE = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}


class ChatCompletions:
    def read(self, path: str, body: Json) -> Request:
        messages = [
            Message(ROLES.get(each["role"], "system"), text_of(each.get("content")))
            for each in body.get("messages", [])
        ]
        tools = frozenset(each["function"]["name"] for each in body.get("tools") or [])
        return Request(messages, tools, bool(body.get("stream")))

    def use(self, part: WriteTool | ShellTool) -> ToolCall:
        match part:
            case WriteTool(path, content):
                return ToolCall("write", {"filePath": path, "content": content})
            case ShellTool(command):
                return ToolCall("bash", {"command": command, "description": "run it"})

    async def stream(self, pieces: AsyncIterator[str | ToolCall]) -> AsyncIterator[Json]:
        finish = "stop"
        async for piece in pieces:
            match piece:
                case str(text):
                    yield _chunk({"content": text})
                case ToolCall(tool, arguments):
                    finish = "tool_calls"
                    function = {"name": tool, "arguments": json.dumps(arguments)}
                    call = {"index": 0, "id": uuid.uuid4().hex, "type": "function", "function": function}
                    yield _chunk({"tool_calls": [call]})
        yield _chunk({}, finish)

    def whole(self, text: str) -> Json:
        choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        return {"id": "stub", "object": "chat.completion", "created": 0, "choices": [choice], "usage": USAGE}


def _chunk(delta: Json, finish: str | None = None) -> Json:
    choice: dict[str, Any] = {"index": 0, "delta": {"role": "assistant", **delta}, "finish_reason": finish}
    chunk = {"id": "stub", "object": "chat.completion.chunk", "created": 0, "model": "stub"}
    return chunk | {"choices": [choice]} | ({"usage": USAGE} if finish else {})
