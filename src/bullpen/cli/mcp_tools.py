"""Define the MCP tools with which an agent uses Bullpen.

The server checks what the agent's token allows. No tool answers a permission or a question: only people do.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing, asynccontextmanager, suppress
from typing import Any

from ..client import Client, Message, QuestionClient, Session
from ..domain.errors import Invalid, Unauthorized
from ..domain.titles import short_title
from ..wire.json import encode
from ..wire.mcp import McpTool
from .terminal.plain import PlainTextConverter
from .wait import OUTCOMES, watch

MAX_WAIT_SECONDS = 50  # many clients give up a call after a minute
MAX_TEXT_BYTES = 40_000  # of a conversation in one answer
DEFAULT_MESSAGES = 20
MAX_CHUNKS = 2_000  # the newest of a conversation; one message of an agent comes in many chunks

_SESSION = {"type": "string", "description": "The id of a session."}
_SECONDS = {
    "type": "number",
    "description": f"How long to wait, at most and by default {MAX_WAIT_SECONDS}.",
}

SESSION_TOOLS = [
    McpTool(
        name="list_sessions",
        title="List sessions",
        description="Lists the sessions you may see, newest first: id, title, directory, status, agents.",
        fields={
            "query": {"type": "string", "description": "Only sessions with this text in their title."},
            "active": {"type": "boolean", "description": "Only sessions that have not ended."},
        },
        reads_only=True,
    ),
    McpTool(
        name="list_agents",
        title="List agents",
        description="Lists the agents that can be started, and whether each is installed.",
        reads_only=True,
    ),
    McpTool(
        name="start_session",
        title="Start a session",
        description="Starts an agent on a task of its own, in a directory. Returns the session's id at once; "
        "use wait_for_session and read_session for the result.",
        fields={
            "agent": {"type": "string", "description": "The agent's id, as in list_agents."},
            "directory": {"type": "string", "description": "The absolute path of the directory it works in."},
            "prompt": {"type": "string", "description": "The task."},
            "title": {"type": "string", "description": "The title that people see in lists."},
        },
        required=("agent", "directory", "prompt"),
    ),
    McpTool(
        name="prompt_session",
        title="Prompt a session",
        description="Sends a prompt to a session's agent. If the agent is busy, the prompt is queued.",
        fields={"session": _SESSION, "prompt": {"type": "string", "description": "The text of the prompt."}},
        required=("session", "prompt"),
    ),
    McpTool(
        name="wait_for_session",
        title="Wait for a session",
        description="Waits until a session's agents are done, or one has failed or needs a person.",
        fields={"session": _SESSION, "seconds": _SECONDS},
        required=("session",),
        reads_only=True,
    ),
    McpTool(
        name="read_session",
        title="Read a session",
        description="Returns the last messages of a session, oldest first; `earlier`: there are more.",
        fields={
            "session": _SESSION,
            "messages": {
                "type": "integer",
                "description": f"The maximum number; {DEFAULT_MESSAGES} by default.",
            },
        },
        required=("session",),
        reads_only=True,
    ),
    McpTool(
        name="run_command",
        title="Run a command",
        description="Runs a command in a terminal of a session, without a shell. Returns its exit code, null "
        "while it runs, and the end of its output. A person can watch it.",
        fields={
            "session": _SESSION,
            "command": {
                "type": "array",
                "items": {"type": "string"},
                "description": "The program and its arguments.",
            },
            "seconds": _SECONDS,
        },
        required=("session", "command"),
    ),
]
QUESTION_TOOLS = [
    McpTool(
        name="ask_human",
        title="Ask your human",
        description="Asks the person you work for a question, which appears in their inbox, and waits for "
        "the answer. Without an answer in time you get a ticket: call again with only the ticket to wait on.",
        fields={
            "question": {"type": "string", "description": "The question."},
            "options": {
                "type": "array",
                "items": {"type": "string"},
                "description": "Answers to choose from.",
            },
            "ticket": {"type": "string", "description": "The ticket of an earlier question."},
            "seconds": _SECONDS,
        },
    ),
]


class McpTools:
    """The tools of one agent: `client` has its token, `asker` the credential of its own run for questions."""

    def __init__(self, client: Client | None, asker: QuestionClient | None) -> None:
        self._client = client
        self._asker = asker
        self._functions: dict[str, Callable[..., Awaitable[Any]]] = {}
        self.tools: list[McpTool] = []
        if client is not None:
            self._add(SESSION_TOOLS)
        if asker is not None:
            self._add(QUESTION_TOOLS)

    @classmethod
    @asynccontextmanager
    async def open(cls, env: Mapping[str, str] = os.environ) -> AsyncIterator["McpTools"]:
        """Yield the tools for the credentials in the environment: a token, that of a run, or both."""
        asker = QuestionClient.from_environment(env)
        if not env.get("BULLPEN_TOKEN") and asker is None:
            raise Unauthorized(
                "set BULLPEN_TOKEN to a token for the agent: bullpen token add helper --scope delegate"
            )
        try:
            if env.get("BULLPEN_TOKEN"):
                async with Client() as client:
                    yield cls(client, asker)
            else:
                yield cls(None, asker)
        finally:
            if asker is not None:
                await asker.close()

    async def call(self, name: str, arguments: dict[str, Any]) -> str:
        """Call a tool and return its result as JSON text."""
        present = {name: value for name, value in arguments.items() if value is not None}
        return encode(await self._functions[name](**present)).decode()

    def _add(self, tools: list[McpTool]) -> None:
        """Offer tools whose methods are named like them."""
        self.tools += tools
        self._functions |= {tool.name: getattr(self, f"_{tool.name}") for tool in tools}

    @property
    def _session_client(self) -> Client:
        """The client with the agent's token."""
        assert self._client is not None
        return self._client

    async def _list_sessions(self, query: str | None = None, active: bool = False) -> list[dict[str, Any]]:
        """Return the visible sessions."""
        status = ["active"] if active else []
        return [_describe(session) for session in await self._session_client.sessions(status=status, q=query)]

    async def _list_agents(self) -> list[dict[str, Any]]:
        """Return the agents that can be started."""
        agents = await self._session_client.agents()
        return [{"id": each.id, "name": each.name, "installed": each.installed} for each in agents]

    async def _start_session(
        self, agent: str, directory: str, prompt: str, title: str | None = None
    ) -> dict[str, Any]:
        """Create a session with an agent and send the prompt."""
        client = self._session_client
        title = title or short_title(prompt)
        session = await client.create_session(
            location_path=directory, find_repository=True, agent_id=agent, title=title
        )
        await client.prompt(session.id, prompt)
        return _describe(session)

    async def _prompt_session(self, session: str, prompt: str) -> dict[str, Any]:
        """Send a prompt, which waits in the queue if the agent is busy."""
        prompted = await self._session_client.prompt(session, prompt, busy="queue")
        return {"promptId": prompted.prompt_id, "queued": prompted.queued}

    async def _wait_for_session(self, session: str, seconds: float = MAX_WAIT_SECONDS) -> dict[str, Any]:
        """Wait for the outcome of a session, and return it with the last message."""
        client = self._session_client
        async with aclosing(watch(client, session, None)) as updates:
            found, outcome = await anext(updates)
            with suppress(TimeoutError):
                async with asyncio.timeout(min(seconds, MAX_WAIT_SECONDS)):
                    while outcome is None:
                        found, outcome = await anext(updates)
        last = _join_chunks(await client.messages(session, limit=MAX_CHUNKS, newest=True))[-1:]
        return _describe(found) | {"outcome": _outcome(outcome), "last": last}

    async def _read_session(self, session: str, messages: int = DEFAULT_MESSAGES) -> dict[str, Any]:
        """Return the last messages of a session."""
        chunks = await self._session_client.messages(session, limit=MAX_CHUNKS, newest=True)
        joined = _join_chunks(chunks)
        shown = _limit_text(joined[-max(1, messages) :])
        return {"earlier": len(joined) > len(shown) or len(chunks) == MAX_CHUNKS, "messages": shown}

    async def _run_command(
        self, session: str, command: list[str], seconds: float = MAX_WAIT_SECONDS
    ) -> dict[str, Any]:
        """Run a command in a new terminal, wait for its end, and return how it ended and what it printed."""
        client = self._session_client
        worker = await client.add_worker(session, command=command)
        with suppress(TimeoutError):
            async with asyncio.timeout(min(seconds, MAX_WAIT_SECONDS)):
                async with aclosing(watch(client, session, worker)) as updates:
                    while (await anext(updates))[1] is None:
                        pass
        worker = await client.worker(session, worker.id)
        converter, output = PlainTextConverter(colours=False), b""
        async for frame in client.output(session, worker.id):
            output = (output + converter.feed(frame.data))[-MAX_TEXT_BYTES:]
        ended = {"exitCode": worker.exit_code, "signal": worker.signal, "error": worker.error}
        return {"worker": worker.id, "output": output.decode(errors="replace"), **ended}

    async def _ask_human(
        self,
        question: str | None = None,
        options: list[str] | None = None,
        ticket: str | None = None,
        seconds: float = MAX_WAIT_SECONDS,
    ) -> dict[str, Any]:
        """Ask a question or wait on for an earlier one, and return the answer or a ticket."""
        assert self._asker is not None
        if ticket is None and not question:
            raise Invalid("ask_human needs a question, or the ticket of one")
        question_ticket = ticket or await self._asker.ask(question or "", options or [])
        state = await self._asker.wait_for_answer(question_ticket, min(seconds, MAX_WAIT_SECONDS))
        if state.status == "pending":
            return {"status": "no answer yet", "ticket": question_ticket}
        return {"status": state.status, "answer": state.answer}


def _outcome(code: int | None) -> str:
    """Return the outcome of an exit code; None means that the session is working."""
    return "working" if code is None else OUTCOMES[code]


def _describe(session: Session) -> dict[str, Any]:
    """Return what an agent sees of a session."""
    return {
        "id": session.id,
        "title": session.title,
        "directory": session.location_path,
        "status": session.status,
        "workers": [
            {"role": each.role, "agent": each.agent_id, "state": each.state, "activity": each.activity}
            | ({"error": each.error} if each.error else {})
            for each in session.workers
        ],
    }


def _join_chunks(messages: list[Message]) -> list[dict[str, Any]]:
    """Return whole messages: the server stores an agent's text in the chunks in which it arrived."""
    joined: list[dict[str, Any]] = []
    for chunk in messages:
        message = {"role": chunk.role, **chunk.content}
        if joined and joined[-1].get("partial") and "partial" in message:
            message["text"] = joined.pop()["text"] + message["text"]
        joined.append(message)
    return joined


def _limit_text(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the newest messages that fit into one answer, at least one."""
    shown: list[dict[str, Any]] = []
    room = MAX_TEXT_BYTES
    for message in reversed(messages):
        room -= len(encode(message))
        if room < 0 and shown:
            break
        shown.append(message)
    return shown[::-1]
