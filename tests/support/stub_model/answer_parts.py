"""The parts of a model's answer: text, pauses, and calls of the agent's tools."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import Any

from msgspec import Struct


class Text(Struct, frozen=True):
    """Text that is streamed word by word."""

    text: str


class WriteTool(Struct, frozen=True):
    """A call of the agent's tool that writes a file."""

    path: str
    content: str


class ShellTool(Struct, frozen=True):
    """A call of the agent's tool that runs a command."""

    command: str


class Pause:
    """A position at which the stream waits until the test sets `released`."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()
        self.released = asyncio.Event()

    async def until_reached(self, seconds: float) -> None:
        async with asyncio.timeout(seconds):
            await self.reached.wait()


Part = Text | WriteTool | ShellTool | Pause
Answer = tuple[Part, ...]


class ToolCall(Struct, frozen=True):
    """A tool call in the names of one agent. Free-form tools take a text, other tools an object."""

    tool: str
    arguments: dict[str, Any] | str


async def stream_parts(answer: Iterable[Part]) -> AsyncIterator[str | WriteTool | ShellTool]:
    """Yield the words and tool calls of an answer, and wait at its pauses."""
    for part in answer:
        match part:
            case Text(text):
                for word in text.split(" "):
                    yield f"{word} "
            case Pause():
                part.reached.set()
                await part.released.wait()
            case _:
                yield part
