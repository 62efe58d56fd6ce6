"""What a model answers: words, and at the end perhaps the use of a tool."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import Any

from msgspec import Struct


class Say(Struct, frozen=True):
    """Text, word by word."""

    text: str


class Write(Struct, frozen=True):
    """The agent's own tool that makes a file."""

    path: str
    content: str


class Shell(Struct, frozen=True):
    """The agent's own tool that runs a command."""

    command: str


class Hold:
    """The stream stands still here until the test lets it go on."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()
        self.released = asyncio.Event()

    async def until_reached(self, seconds: float) -> None:
        async with asyncio.timeout(seconds):
            await self.reached.wait()


Part = Say | Write | Shell | Hold
Answer = tuple[Part, ...]


class Use(Struct, frozen=True):
    """A tool as the agent calls it; a free-form one takes text, others an object."""

    tool: str
    arguments: dict[str, Any] | str


async def streamed(answer: Iterable[Part]) -> AsyncIterator[str | Write | Shell]:
    """The pieces of an answer at the time they are due."""
    for part in answer:
        match part:
            case Say(text):
                for word in text.split(" "):
                    yield f"{word} "
            case Hold():
                part.reached.set()
                await part.released.wait()
            case _:
                yield part
