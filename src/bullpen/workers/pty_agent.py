"""An agent that only has a terminal, as a worker: all see it and type to it; its screen tells what it does.

What it is prompted leaves through the outbox, like the lines of an agent that speaks ACP: once, over any
number of restarts.
"""

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

import structlog

from ..domain.agents import AgentDefinition, fill_placeholders
from ..domain.conversation_state import Conversation, Turn
from ..domain.errors import Conflict, NotFound
from ..domain.events import Fact, WorkerExited, WorkerFailed
from ..domain.signs import JudgedActivity, ScreenPatterns, TypingKeys
from ..domain.snapshot import Snapshot, Worker
from ..domain.states import WorkerState
from ..log.log import Change, SessionLog
from ..store.events import EventStore
from . import pty_orders
from .agent_run import AgentRun
from .children import ChildEnd, ChildHandle, ChildStart
from .conversation_change import ConversationChange
from .outbox_sender import OutboxSender
from .pty_watch import ActivityWatch
from .restarts import crashed
from .terminal import TerminalActivity, TerminalWorker
from .worker_services import TERMINAL, WorkerServices

log = structlog.get_logger()


class PtyAgent(TerminalWorker):
    """One run of such an agent."""

    def __init__(self, worker: Worker, log: SessionLog, workshop: WorkerServices) -> None:
        super().__init__(worker, log, workshop)
        self._run = AgentRun(worker, log, workshop)
        self._watch: ActivityWatch | None = None

    def write(self, viewer: str, writer: str, n: int, data: bytes) -> asyncio.Future[int]:
        if self._watch is not None:
            self._watch.typed(data)
        return super().write(viewer, writer, n, data)

    @property
    def doing(self) -> TerminalActivity:
        now = self._state()[0]
        return TerminalActivity(now.activity.value, now.activity_why, now.activity_since)

    async def claim(self, verdict: JudgedActivity) -> None:
        """The agent says itself what it does (R72)."""
        if self._watch is not None:
            self._watch.claimed(verdict)
        await self._tell_activity(verdict, self._state()[1])

    def _start(self) -> ChildStart:
        agents, worker = self._workshop.agents, self.worker
        definition = agents.get(worker.agent_id or "")
        if definition.kind != "pty":
            raise Conflict(f"{definition.name} is no agent for a terminal any more; start it in a new worker")
        command = agents.command(definition, self._continues(definition))
        session_id = self._conversation.acp_session_id or pty_orders.new_session_id(worker)
        base, own_key = agents.environment(definition), self._workshop.own_key(worker.id, worker.run)
        more = {**TERMINAL, **definition.env, **own_key}
        environment = self._workshop.environment(worker, self._log.snapshot.repo_id, base, more)
        log.info("starting an agent in a terminal", agent=definition.id, worker=worker.id)
        argv = fill_placeholders(command, sessionId=session_id)
        return ChildStart(argv, environment, self._workshop.place(worker), worker.cols, worker.rows)

    def _continues(self, definition: AgentDefinition) -> bool:
        """Whether there is a conversation to go back to, and a way."""
        return bool(definition.continue_command) and self._conversation.acp_session_id is not None

    def _beside(self, child: ChildHandle) -> list[Coroutine[Any, Any, None]]:
        definition = self._definition()
        signs, keys = (definition.signs, definition.keys) if definition else (ScreenPatterns(), TypingKeys())
        see = partial(self._workshop.screens.seen, self.worker, child.recording)
        watch = ActivityWatch(see, child.recording, signs, self._state, self._tell_activity)
        if child.written >= self._conversation.traffic.sent:
            watch.submitted(0)  # before we were there
        self._watch = watch
        post = KeystrokeSender(self._log, self._workshop.store, child, keys, watch.submitted)
        return [*super()._beside(child), watch.go_on(), post.carry(), self._tell_viewers()]

    def _definition(self) -> AgentDefinition | None:
        """None when it was removed while the agent runs: then only silence tells what it does."""
        try:
            return self._workshop.agents.get(self.worker.agent_id or "")
        except NotFound:
            return None

    @property
    def _conversation(self) -> Conversation:
        return self._log.snapshot.conversations.get(self.worker.id, Conversation())

    def _state(self) -> tuple[Worker, Turn | None]:
        return self._log.snapshot.worker(self.worker.id), self._conversation.turn

    async def _tell_activity(self, verdict: JudgedActivity, turn: Turn | None) -> None:
        ordered = self._watch is not None and self._watch.was_ordered

        def decide(exchange: ConversationChange) -> Change:
            pty_orders.tell_activity(exchange, verdict, turn, ordered)
            return exchange.change()

        await self._run.change(decide)

    async def _tell_viewers(self) -> None:
        """Of every change of its activity, whoever made it."""
        told = self.doing
        while True:
            if told != self.doing:
                told = self.doing
                self._tell()
            await self._log.news.wait()

    def _last_fact(self, ended: ChildEnd) -> Fact:
        """An agent that ends against its will has failed (R68)."""
        if ended.lost or (ended.code == 0 and ended.signal is None):
            return super()._last_fact(ended)
        how = f"was ended by {ended.signal}" if ended.signal else f"ended with exit code {ended.code}"
        error = f"it {how}; its terminal shows why"
        return WorkerFailed(error=error, exit_code=ended.code, signal=ended.signal)

    async def _record(self, fact: Fact, expected: WorkerState) -> None:
        """The end of a run closes what was open in it."""

        def decide(snapshot: Snapshot) -> Change:
            now = snapshot.worker(self.worker.id)
            if now.run != self.worker.run or now.state is not expected:
                return Change()
            exchange = ConversationChange(snapshot, now.id)
            match fact:
                case WorkerFailed():
                    told = crashed(now, fact, self._workshop.agents)
                    exchange.fail(told, blames_session=expected is WorkerState.SPAWNING)
                case WorkerExited():
                    exchange.end(fact)
                case _:
                    exchange.tell(fact)
            return exchange.change()

        await self._log.change(decide, patient=True)


class KeystrokeSender(OutboxSender):
    """Types what is in the outbox. The key that submits a text comes when the program has drawn the text, and
    a moment later: a program that reads both at once takes it for a part of the text."""

    def __init__(
        self,
        log: SessionLog,
        store: EventStore,
        child: ChildHandle,
        keys: TypingKeys,
        submitted: Callable[[int], None],
    ) -> None:
        super().__init__(log, store, child)
        self._keys = keys
        self._submitted = submitted
        self._typed_at: int | None = None  # where the recording ended before the last piece of a text

    async def _before(self, line: bytes) -> None:
        recording = self._child.recording
        if line != self._keys.submit.encode():
            self._typed_at = recording.end
            return
        if self._typed_at is not None:  # else it was typed before we were there
            await recording.grown(self._typed_at, self._keys.echo)
        await asyncio.sleep(self._keys.pause)
        self._submitted(recording.end)
