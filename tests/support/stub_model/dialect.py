"""What the three ways of speaking to a model have in common."""

from collections.abc import AsyncIterator
from typing import Any, Literal, Protocol

from msgspec import Struct

from .answers import Shell, Use, Write

Json = dict[str, Any]


class Message(Struct, frozen=True):
    """One message of a conversation, or one part of it; a tool's is what it came to."""

    role: Literal["system", "user", "model", "tool"]
    text: str


class Request(Struct, frozen=True):
    """What an agent sent: the conversation so far, and the tools it has."""

    messages: list[Message]
    tools: frozenset[str]
    streams: bool


class Dialect(Protocol):
    """Reads requests, and writes answers as the events of a stream or as one object."""

    def read(self, path: str, body: Json) -> Request: ...

    def use(self, part: Write | Shell) -> Use: ...

    def stream(self, pieces: AsyncIterator[str | Use]) -> AsyncIterator[Json]: ...

    def whole(self, text: str) -> Json: ...


def text_of(content: Any) -> str:
    """The text of a message, which may be in pieces."""
    match content:
        case str(text) | {"text": str(text)}:
            return text
        case {"content": inner}:
            return text_of(inner)
        case list(parts):
            return "\n".join(text_of(part) for part in parts)
        case _:
            return ""
