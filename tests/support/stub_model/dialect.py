"""The interface of the three protocols by which agents call models."""

from collections.abc import AsyncIterator
from typing import Any, Literal, Protocol

from msgspec import Struct

from .answer_parts import ShellTool, ToolCall, WriteTool

Json = dict[str, Any]


class Message(Struct, frozen=True):
    """One message of a conversation, or a part of one. A message of a tool is its result."""

    role: Literal["system", "user", "model", "tool"]
    text: str


class Request(Struct, frozen=True):
    """A request of an agent: the conversation so far, and the names of its tools."""

    messages: list[Message]
    tools: frozenset[str]
    streams: bool


class Dialect(Protocol):
    """Reads requests, and writes answers as events of a stream or as one object."""

    def read(self, path: str, body: Json) -> Request: ...

    def use(self, part: WriteTool | ShellTool) -> ToolCall: ...

    def stream(self, pieces: AsyncIterator[str | ToolCall]) -> AsyncIterator[Json]: ...

    def whole(self, text: str) -> Json: ...


def text_of(content: Any) -> str:
    """Return the text of a message, whose content may be a list of parts."""
    match content:
        case str(text) | {"text": str(text)}:
            return text
        case {"content": inner}:
            return text_of(inner)
        case list(parts):
            return "\n".join(text_of(part) for part in parts)
        case _:
            return ""
