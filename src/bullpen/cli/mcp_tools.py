"""What an agent may do with Bullpen over MCP. The server decides how far its token goes; nothing here answers
a permission or a question: that is for people."""

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
from .wait import OUTCOMES, looks

LONGEST_WAIT = 50  # seconds: many clients give a call up after a minute
LONGEST_TEXT = 40_000  # letters of a conversation at once
SHOWN = 20  # messages
PIECES = 2_000  # the newest of a conversation; what an agent says comes in many of them

_SESSION = {"type": "string", "description": "The id of a session."}
_SECONDS = {
    "type": "number",
    "description": f"How long to wait, at most {LONGEST_WAIT}, which it is when left out.",
}

STEERING = [
    McpTool(
        name="list_sessions",
        title="List sessions",
        description="Sessions you may see, newest first: id, title, directory, status, its agents.",
        fields={
            "query": {"type": "string", "description": "Only those with this in their title."},
            "active": {"type": "boolean", "description": "Only those that have not ended."},
        },
        reads_only=True,
    ),
    McpTool(
        name="list_agents",
        title="List agents",
        description="The agents a session can be started with, and whether each is installed.",
        reads_only=True,
    ),
    McpTool(
        name="start_session",
        title="Start a session",
        description="Starts an agent on a task of its own, in a directory. Returns the session's id at once; "
        "wait_for_session and read_session tell what came of it.",
        fields={
            "agent": {"type": "string", "description": "The agent's id, as in list_agents."},
            "directory": {"type": "string", "description": "Where it works: an absolute path."},
            "prompt": {"type": "string", "description": "What it is to do."},
            "title": {"type": "string", "description": "What people see in the list."},
        },
        required=("agent", "directory", "prompt"),
    ),
    McpTool(
        name="prompt_session",
        title="Prompt a session",
        description="Says something to a session's agent. When it is busy the prompt waits in its queue.",
        fields={"session": _SESSION, "prompt": {"type": "string", "description": "What to say."}},
        required=("session", "prompt"),
    ),
    McpTool(
        name="wait_for_session",
        title="Wait for a session",
        description="Waits until a session's agents are done, one has failed, or one needs a person.",
        fields={"session": _SESSION, "seconds": _SECONDS},
        required=("session",),
        reads_only=True,
    ),
    McpTool(
        name="read_session",
        title="Read a session",
        description="The last messages of a session, oldest first; `earlier` says whether there are more.",
        fields={
            "session": _SESSION,
            "messages": {"type": "integer", "description": f"How many at most; {SHOWN} when left out."},
        },
        required=("session",),
        reads_only=True,
    ),
]
ASKING = [
    McpTool(
        name="ask_human",
        title="Ask your human",
        description="Asks the person you work for a question, which waits in their inbox, and waits for the "
        "answer. When none has come in time you get a ticket: call again with the ticket alone to wait on.",
        fields={
            "question": {"type": "string", "description": "What you want to know."},
            "options": {
                "type": "array",
                "items": {"type": "string"},
                "description": "Answers to choose from.",
            },
            "ticket": {"type": "string", "description": "Of a question asked before."},
            "seconds": _SECONDS,
        },
    ),
]


class McpTools:
    """`client` steers sessions with a token; `asker` asks with the key of a worker's own run."""

    def __init__(self, client: Client | None, asker: QuestionClient | None) -> None:
        self._client = client
        self._asker = asker
        self._offered: dict[str, Callable[..., Awaitable[Any]]] = {}
        self.tools: list[McpTool] = []
        if client is not None:
            self._offer(STEERING)
        if asker is not None:
            self._offer(ASKING)

    @classmethod
    @asynccontextmanager
    async def open(cls, env: Mapping[str, str] = os.environ) -> AsyncIterator["McpTools"]:
        """With what the environment opens: a token, the key of a run, or both."""
        asker = QuestionClient.from_environment(env)
        if not env.get("BULLPEN_TOKEN") and asker is None:
            raise Unauthorized(
                "give it a token of its own in BULLPEN_TOKEN: bullpen token add helper --scope delegate"
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
        given = {name: value for name, value in arguments.items() if value is not None}
        return encode(await self._offered[name](**given)).decode()

    def _offer(self, tools: list[McpTool]) -> None:
        self.tools += tools
        self._offered |= {tool.name: getattr(self, f"_{tool.name}") for tool in tools}

    @property
    def _steering(self) -> Client:
        assert self._client is not None
        return self._client

    async def _list_sessions(self, query: str | None = None, active: bool = False) -> list[dict[str, Any]]:
        status = ["active"] if active else []
        return [_shown(session) for session in await self._steering.sessions(status=status, q=query)]

    async def _list_agents(self) -> list[dict[str, Any]]:
        agents = await self._steering.agents()
        return [{"id": each.id, "name": each.name, "installed": each.installed} for each in agents]

    async def _start_session(
        self, agent: str, directory: str, prompt: str, title: str | None = None
    ) -> dict[str, Any]:
        client = self._steering
        title = title or short_title(prompt)
        session = await client.create_session(
            location_path=directory, find_repository=True, agent_id=agent, title=title
        )
        await client.prompt(session.id, prompt)
        return _shown(session)

    async def _prompt_session(self, session: str, prompt: str) -> dict[str, Any]:
        prompted = await self._steering.prompt(session, prompt, busy="queue")
        return {"promptId": prompted.prompt_id, "queued": prompted.queued}

    async def _wait_for_session(self, session: str, seconds: float = LONGEST_WAIT) -> dict[str, Any]:
        client = self._steering
        async with aclosing(looks(client, session, None)) as seen:
            found, outcome = await anext(seen)
            with suppress(TimeoutError):
                async with asyncio.timeout(min(seconds, LONGEST_WAIT)):
                    while outcome is None:
                        found, outcome = await anext(seen)
        last = _joined(await client.messages(session, limit=PIECES, newest=True))[-1:]
        return _shown(found) | {"outcome": _outcome(outcome), "last": last}

    async def _read_session(self, session: str, messages: int = SHOWN) -> dict[str, Any]:
        pieces = await self._steering.messages(session, limit=PIECES, newest=True)
        said = _joined(pieces)
        shown = _fitting(said[-max(1, messages) :])
        return {"earlier": len(said) > len(shown) or len(pieces) == PIECES, "messages": shown}

    async def _ask_human(
        self,
        question: str | None = None,
        options: list[str] | None = None,
        ticket: str | None = None,
        seconds: float = LONGEST_WAIT,
    ) -> dict[str, Any]:
        assert self._asker is not None
        if ticket is None and not question:
            raise Invalid("ask_human needs a question, or the ticket of one")
        asked = ticket or await self._asker.ask(question or "", options or [])
        state = await self._asker.wait_for_answer(asked, min(seconds, LONGEST_WAIT))
        if state.status == "pending":
            return {"status": "no answer yet", "ticket": asked}
        return {"status": state.status, "answer": state.answer}


def _outcome(code: int | None) -> str:
    return "working" if code is None else OUTCOMES[code]


def _shown(session: Session) -> dict[str, Any]:
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


def _joined(messages: list[Message]) -> list[dict[str, Any]]:
    """What was said, each thing whole: an agent's text is stored as it came, piece by piece."""
    whole: list[dict[str, Any]] = []
    for message in messages:
        said = {"role": message.role, **message.content}
        if whole and whole[-1].get("partial") and "partial" in said:
            said["text"] = whole.pop()["text"] + said["text"]
        whole.append(said)
    return whole


def _fitting(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The newest that fit into what a model is to read at once."""
    shown: list[dict[str, Any]] = []
    room = LONGEST_TEXT
    for said in reversed(messages):
        room -= len(encode(said))
        if room < 0 and shown:
            break
        shown.append(said)
    return shown[::-1]
