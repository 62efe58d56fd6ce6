"""The model itself: what it was told to answer, what it was asked, and the port it listens on."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request as HttpRequest
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from .answers import Answer, Hold, Say, Shell, Use, Write, streamed
from .chat import Chat
from .dialect import Dialect, Message, Request
from .gemini import Gemini
from .responses import Responses

SECONDS = 60.0

DIALECTS: dict[str, Dialect] = {
    "/v1/chat/completions": Chat(),
    "/v1/responses": Responses(),
    "/v1beta/models/{call}": Gemini(),
}


class Asked:
    """One request in the model's log."""

    def __init__(self, prompt: str | None, request: Request, results: list[Message]) -> None:
        self.prompt = prompt
        self.request = request
        self.results = results  # what the tools came to that were used since the prompt
        self.outcome: str | None = None  # `finished`, or `hung up` by the agent

    def count(self, text: str) -> int:
        """How often a text is in the conversation the agent sent."""
        return sum(message.text.count(text) for message in self.request.messages)


class StubModel:
    """Answers a prompt as it was told to; a request beside a turn, for a title say, it answers shortly."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.log: list[Asked] = []
        self._answers: dict[str, tuple[Answer, ...]] = {}
        self._grown = asyncio.Condition()

    @classmethod
    @asynccontextmanager
    async def running(cls) -> AsyncIterator["StubModel"]:
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            model = cls(listener.getsockname()[1])
            settings = uvicorn.Config(
                model.app(), lifespan="off", log_config=None, timeout_graceful_shutdown=1
            )
            server = uvicorn.Server(settings)
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(server.serve(sockets=[listener]))
                try:
                    yield model
                finally:
                    model.let_go()
                    server.should_exit = True

    def app(self) -> Starlette:
        routes = [
            Route(path, self._endpoint(dialect), methods=["POST"]) for path, dialect in DIALECTS.items()
        ]
        return Starlette(routes=routes)

    def answers(self, prompt: str, *answers: Answer) -> None:
        """The first answer to a prompt, the one after the first tool, and so on."""
        self._answers[prompt] = answers

    def let_go(self) -> None:
        """Nothing is held any more."""
        for answer in [each for answers in self._answers.values() for each in answers]:
            for part in answer:
                if isinstance(part, Hold):
                    part.released.set()

    def asked(self, prompt: str) -> list[Asked]:
        """The requests of the turn that this prompt began."""
        return [each for each in self.log if each.prompt == prompt]

    async def until(self, condition: Callable[[], object]) -> None:
        """Waits until the log is as wanted."""
        try:
            async with asyncio.timeout(SECONDS), self._grown:
                await self._grown.wait_for(condition)
        except TimeoutError:
            told = [(each.prompt, len(each.results), each.outcome) for each in self.log]
            raise AssertionError(f"it did not come to that: {told}") from None

    def _endpoint(self, dialect: Dialect) -> Callable[[HttpRequest], Any]:
        async def endpoint(http: HttpRequest) -> Response:
            request = dialect.read(http.url.path, await http.json())
            asked = self._take(request)
            await self._note(asked)
            if not request.streams:
                return JSONResponse(dialect.whole("A title"))
            return StreamingResponse(self._stream(dialect, asked), media_type="text/event-stream")

        return endpoint

    def _take(self, request: Request) -> Asked:
        """Which prompt a request is about, and how far its turn is."""
        messages = request.messages
        for at in reversed(range(len(messages))) if request.tools else ():
            if messages[at].role == "user" and (prompt := self._prompt_in(messages[at].text)):
                return Asked(prompt, request, [each for each in messages[at:] if each.role == "tool"])
        return Asked(None, request, [])

    def _prompt_in(self, text: str) -> str | None:
        """The last prompt in a message: what was said before may stand in front of it."""
        found = [prompt for prompt in self._answers if prompt in text]
        return max(found, key=text.rfind, default=None)

    async def _note(self, asked: Asked, outcome: str | None = None) -> None:
        if outcome is None:
            self.log.append(asked)
        asked.outcome = outcome
        async with self._grown:
            self._grown.notify_all()

    async def _stream(self, dialect: Dialect, asked: Asked) -> AsyncIterator[str]:
        outcome = "hung up"
        try:
            async for event in dialect.stream(_pieces(dialect, self._answer(asked))):
                yield _as_sent(event)
            outcome = "finished"
        finally:
            await asyncio.shield(self._note(asked, outcome))

    def _answer(self, asked: Asked) -> Answer:
        if asked.prompt is None:
            return (Say("A title"),)
        answers = self._answers[asked.prompt]
        return answers[len(asked.results)] if len(asked.results) < len(answers) else (Say("Enough."),)


async def _pieces(dialect: Dialect, answer: Answer) -> AsyncIterator[str | Use]:
    async for piece in streamed(answer):
        yield dialect.use(piece) if isinstance(piece, Write | Shell) else piece


def _as_sent(event: dict[str, Any]) -> str:
    name = f"event: {event['type']}\n" if "type" in event else ""
    return f"{name}data: {json.dumps(event)}\n\n"
