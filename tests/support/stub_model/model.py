"""The stub model: an HTTP server with prepared answers and a log of requests."""

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

from .answer_parts import Answer, Pause, ShellTool, Text, ToolCall, WriteTool, stream_parts
from .chat_completions import ChatCompletions
from .dialect import Dialect, Message, Request
from .gemini import Gemini
from .responses import Responses

SECONDS = 60.0

DIALECTS: dict[str, Dialect] = {
    "/v1/chat/completions": ChatCompletions(),
    "/v1/responses": Responses(),
    "/v1beta/models/{call}": Gemini(),
}


class LoggedRequest:
    """One request in the model's log."""

    def __init__(self, prompt: str | None, request: Request, results: list[Message]) -> None:
        self.prompt = prompt
        self.request = request
        self.results = results  # results of the tools that were called since the prompt
        self.outcome: str | None = None  # `finished`, or `hung up` if the agent disconnected

    def count(self, text: str) -> int:
        """Return how often a text is in the conversation of the request."""
        return sum(message.text.count(text) for message in self.request.messages)


class StubModel:
    """Sends the prepared answers to a prompt. The answer to a request outside a turn is a title."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.log: list[LoggedRequest] = []
        self._answers: dict[str, tuple[Answer, ...]] = {}
        self._log_changed = asyncio.Condition()

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
                    model.release_all()
                    server.should_exit = True

    def app(self) -> Starlette:
        routes = [
            Route(path, self._endpoint(dialect), methods=["POST"]) for path, dialect in DIALECTS.items()
        ]
        return Starlette(routes=routes)

    def set_answers(self, prompt: str, *answers: Answer) -> None:
        """Prepare the answers of a turn: to the prompt, to the result of the first tool, and so on."""
        self._answers[prompt] = answers

    def release_all(self) -> None:
        """End all pauses."""
        for answer in [each for answers in self._answers.values() for each in answers]:
            for part in answer:
                if isinstance(part, Pause):
                    part.released.set()

    def requests_for(self, prompt: str) -> list[LoggedRequest]:
        """Return the requests of the turn that this prompt started."""
        return [each for each in self.log if each.prompt == prompt]

    async def until(self, condition: Callable[[], object]) -> None:
        """Wait until the condition on the log is true."""
        try:
            async with asyncio.timeout(SECONDS), self._log_changed:
                await self._log_changed.wait_for(condition)
        except TimeoutError:
            log = [(each.prompt, len(each.results), each.outcome) for each in self.log]
            raise AssertionError(f"the condition did not become true; requests: {log}") from None

    def _endpoint(self, dialect: Dialect) -> Callable[[HttpRequest], Any]:
        async def endpoint(http: HttpRequest) -> Response:
            request = dialect.read(http.url.path, await http.json())
            logged = self._identify(request)
            await self._record(logged)
            if not request.streams:
                return JSONResponse(dialect.whole("A title"))
            return StreamingResponse(self._stream(dialect, logged), media_type="text/event-stream")

        return endpoint

    def _identify(self, request: Request) -> LoggedRequest:
        """Find the prompt of a request and the tool results since the prompt."""
        messages = request.messages
        for at in reversed(range(len(messages))) if request.tools else ():
            if messages[at].role == "user" and (prompt := self._prompt_in(messages[at].text)):
                return LoggedRequest(prompt, request, [each for each in messages[at:] if each.role == "tool"])
        return LoggedRequest(None, request, [])

    def _prompt_in(self, text: str) -> str | None:
        """Return the last known prompt in a message, which may begin with earlier messages."""
        found = [prompt for prompt in self._answers if prompt in text]
        return max(found, key=text.rfind, default=None)

    async def _record(self, request: LoggedRequest, outcome: str | None = None) -> None:
        """Add a new request to the log, or set the outcome of a logged one."""
        if outcome is None:
            self.log.append(request)
        request.outcome = outcome
        async with self._log_changed:
            self._log_changed.notify_all()

    async def _stream(self, dialect: Dialect, request: LoggedRequest) -> AsyncIterator[str]:
        outcome = "hung up"
        try:
            async for event in dialect.stream(_pieces(dialect, self._answer_to(request))):
                yield _server_sent_event(event)
            outcome = "finished"
        finally:
            await asyncio.shield(self._record(request, outcome))

    def _answer_to(self, request: LoggedRequest) -> Answer:
        if request.prompt is None:
            return (Text("A title"),)
        answers, number = self._answers[request.prompt], len(request.results)
        return answers[number] if number < len(answers) else (Text("Enough."),)


async def _pieces(dialect: Dialect, answer: Answer) -> AsyncIterator[str | ToolCall]:
    async for piece in stream_parts(answer):
        yield dialect.use(piece) if isinstance(piece, WriteTool | ShellTool) else piece


def _server_sent_event(event: dict[str, Any]) -> str:
    name = f"event: {event['type']}\n" if "type" in event else ""
    return f"{name}data: {json.dumps(event)}\n\n"
