"""The protocol generateContent of Gemini, which gemini-cli uses."""

import json
import uuid
from collections.abc import AsyncIterator, Iterator

from .answer_parts import ShellTool, ToolCall, WriteTool
from .dialect import Json, Message, Request

USAGE = {"promptTokenCount": 100, "candidatesTokenCount": 10, "totalTokenCount": 110}


class Gemini:
    def read(self, path: str, body: Json) -> Request:
        messages = [each for content in body.get("contents", []) for each in _messages(content)]
        declared = [each for tool in body.get("tools", []) for each in tool.get("functionDeclarations", [])]
        tools = frozenset(each["name"] for each in declared)
        return Request(messages, tools, path.endswith(":streamGenerateContent"))

    def use(self, part: WriteTool | ShellTool) -> ToolCall:
        match part:
            case WriteTool(path, content):
                return ToolCall("write_file", {"file_path": path, "content": content})
            case ShellTool(command):
                return ToolCall("run_shell_command", {"command": command, "description": "run it"})

    async def stream(self, pieces: AsyncIterator[str | ToolCall]) -> AsyncIterator[Json]:
        async for piece in pieces:
            match piece:
                case str(text):
                    yield _chunk({"text": text})
                case ToolCall(tool, arguments):
                    call = {"name": tool, "args": arguments, "id": uuid.uuid4().hex}
                    yield _chunk({"functionCall": call})
        yield _chunk({"text": ""}, finish="STOP")

    def whole(self, text: str) -> Json:
        return _chunk({"text": text}, finish="STOP")


def _messages(content: Json) -> Iterator[Message]:
    for part in content.get("parts", []):
        match part:
            case {"functionResponse": {"response": response}}:
                yield Message("tool", json.dumps(response))
            case {"text": str(text)}:
                yield Message("model" if content.get("role") == "model" else "user", text)


def _chunk(part: Json, finish: str | None = None) -> Json:
    candidate = {"index": 0, "content": {"role": "model", "parts": [part]}}
    if finish is not None:
        candidate["finishReason"] = finish
    return {"candidates": [candidate], "usageMetadata": USAGE, "modelVersion": "stub"}
