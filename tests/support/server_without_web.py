"""The server without its HTTP interface: sessions with a real database, a real keeper and real agents."""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from bullpen import config
from bullpen.agents.registry import AgentRegistry
from bullpen.domain.commands import AddWorker
from bullpen.domain.events import Draft, Event
from bullpen.domain.ids import new_id
from bullpen.domain.prompts import Prompt, PromptResult
from bullpen.domain.snapshot import Snapshot, Worker
from bullpen.log.log import SessionLog
from bullpen.sandbox.roots import WorkspaceRoots
from bullpen.sessions.create import NewSession, create_session
from bullpen.sessions.session import Session
from bullpen.sessions.sessions import Sessions
from bullpen.sessions.startup import resume_sessions
from bullpen.sessions.tasks import background_tasks
from bullpen.store.database import Database
from bullpen.store.events import EventStore
from bullpen.store.records import RecordStore
from bullpen.workers.children import ChildHandles
from bullpen.workers.screens import Screens
from bullpen.workers.worker_services import WorkerServices

from .scripted_agent.command import scripted_command

DEADLINE = 60.0


class ServerWithoutWeb:
    """Runs the parts of a server in the test process.

    It can be opened again on the same directory after it was closed, as a server is restarted.
    """

    def __init__(self, directory: Path, idle_seconds: float | None = None, **env: str) -> None:
        self.home = directory / "home"
        self.workspace = directory / "workspace"
        self.journal = directory / "journal"
        self.sessions: Sessions
        self.records: RecordStore
        self.registry = AgentRegistry(directory / "agents")
        self._directory = directory
        self._idle_seconds = idle_seconds
        self._env = {
            "HOME": str(self.workspace),
            "BULLPEN_HOME": str(self.home),
            "AGENT_WORKSPACE_ROOT": str(self.workspace),
            "BULLPEN_SANDBOX_TOOLCHAINS": os.environ["BULLPEN_SANDBOX_TOOLCHAINS"],
            **env,
        }
        for path in (self.home, self.workspace):
            path.mkdir(exist_ok=True)

    def define_agent(
        self, agent_id: str = "scripted", script: dict[str, Any] | None = None, **more: Any
    ) -> None:
        """Define the scripted agent with a script, as a user defines an agent."""
        path = self._directory / f"{agent_id}.script.json"
        path.write_text(json.dumps(script or {}))
        command = scripted_command(self.journal, path)
        state = [f"{self._directory}/"]  # of the journal
        definition = {"name": agent_id.capitalize(), "kind": "acp", "command": command, "state": state}
        self.registry.add(agent_id, definition | more)

    def set(self, **env: str) -> None:
        """Change environment variables, from the next `open` on."""
        self._env |= env

    @asynccontextmanager
    async def open(self) -> AsyncIterator["ServerWithoutWeb"]:
        settings = config.load({}, self._env)
        async with (
            Database.open(settings.database_url) as database,
            ChildHandles.open(self.home) as children,
            Screens.open(self.home / "screens") as screens,
            background_tasks() as tasks,
        ):
            store, self.records = EventStore(database), RecordStore(database)
            roots = WorkspaceRoots(settings, self.records, {})
            services = WorkerServices(settings, store, children, screens, self.registry, roots)
            self.sessions = Sessions(store, services, tasks, self._idle_seconds)
            await resume_sessions(self.sessions, self.records)
            yield self

    async def append(self, session_id: str, *drafts: Draft) -> None:
        """Append to a log while the server is closed, as a server that was killed right after."""
        async with Database.open(config.load({}, self._env).database_url) as database:
            log = await SessionLog.open(EventStore(database), session_id)
            await log.append(drafts)

    async def session(self, agent_id: str | None = None, **more: Any) -> Session:
        order = NewSession(location_path=str(self.workspace), agent_id=agent_id, **more)
        return await create_session(self.sessions, self.records, order)

    async def agent(self, session: Session, agent_id: str = "scripted", **more: Any) -> Worker:
        """Add an agent and wait until it is active."""
        order = AddWorker(
            worker_id=new_id(), type="agent", agent_id=agent_id, workspace=str(self.workspace), **more
        )
        worker = await session.add_worker(order)
        await until(session, lambda s: s.worker(worker.id).state == "active")
        return session.snapshot.worker(worker.id)

    async def events(self, session: Session, *types: str) -> list[Event]:
        found = await self.sessions.store.events(session.id, limit=100_000, types=types or None)
        return [event for event, _ in found]

    async def facts(self, session: Session, *types: str) -> list[Any]:
        return [event.fact for event in await self.events(session, *types)]

    async def text(self, session: Session) -> str:
        """Return the text of all agents in the session."""
        return "".join([fact.text for fact in await self.facts(session, "agent_message")])

    async def stop_reasons(self, session: Session) -> list[str]:
        return [fact.stop_reason for fact in await self.facts(session, "turn_end")]

    async def messages(self, session: Session) -> list[dict[str, Any]]:
        rows = await self.sessions.store.messages(session.id)
        return [{"role": row["role"], **json.loads(row["content"])} for row in rows]


async def until(session: Session, condition: Callable[[Snapshot], object]) -> Snapshot:
    """Wait until the snapshot satisfies the condition; return it."""
    try:
        async with asyncio.timeout(DEADLINE):
            while not condition(session.snapshot):
                await session.log.growth.wait()
    except TimeoutError:
        states = [(w.role, w.state, w.activity, w.error) for w in session.snapshot.workers.values()]
        raise AssertionError(f"condition never true: {states}, {session.snapshot.queue}") from None
    return session.snapshot


def primary_agent(snapshot: Snapshot) -> Worker:
    assert snapshot.primary is not None
    return snapshot.primary


async def send_prompt(session: Session, text: str, prompt_id: str | None = None, **more: Any) -> PromptResult:
    return await session.prompt(Prompt(text=text, prompt_id=prompt_id or new_id(), **more))


async def run_turn(session: Session, text: str, **more: Any) -> None:
    """Send a prompt and wait until no agent is in a turn."""
    prompted = await send_prompt(session, text, **more)
    await until(session, lambda s: s.last_seq > prompted.seq and is_idle(s))


def is_idle(snapshot: Snapshot) -> bool:
    """Return whether no agent is in a turn, and the queue will start none."""
    waiting = snapshot.queue.waiting and not snapshot.queue.paused
    return not waiting and all(each.turn is None for each in snapshot.conversations.values())
