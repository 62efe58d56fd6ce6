"""Run an agent that has only a terminal as a worker: type prompts, and judge its activity by its screen.

Prompts are typed through the outbox, like the lines of an agent that speaks ACP: exactly once, also over
restarts of the server.
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
from ..domain.screen_patterns import JudgedActivity, ScreenPatterns, TypingKeys
from ..domain.snapshot import Snapshot, Worker
from ..domain.states import WorkerState
from ..log.log import Change, SessionLog
from ..store.events import EventStore
from . import pty_orders
from .agent_run import AgentRun
from .children import ChildEnd, ChildHandle, ChildSpec
from .conversation_change import ConversationChange
from .outbox_sender import OutboxSender
from .pty_watch import ActivityWatch
from .restarts import plan_restart
from .terminal import TerminalActivity, TerminalWorker
from .worker_services import TERMINAL_VARIABLES, WorkerServices

log = structlog.get_logger()


class PtyAgent(TerminalWorker):
    """One run of an agent in a terminal. Viewers see the terminal and may type too."""

    def __init__(self, worker: Worker, log: SessionLog, services: WorkerServices) -> None:
        super().__init__(worker, log, services)
        self._run = AgentRun(worker, log, services)
        self._watch: ActivityWatch | None = None

    def write(self, viewer: str, writer: str, n: int, data: bytes) -> asyncio.Future[int]:
        """Pass input on to the terminal, and let the activity watch know that a user has typed."""
        if self._watch is not None:
            self._watch.note_input(data)
        return super().write(viewer, writer, n, data)

    @property
    def activity(self) -> TerminalActivity:
        """The stored activity of the agent."""
        now = self._state()[0]
        return TerminalActivity(now.activity.value, now.activity_why, now.activity_since)

    async def report_activity(self, verdict: JudgedActivity) -> None:
        """Record the activity that the agent reports itself; the watch of its screen respects it."""
        if self._watch is not None:
            self._watch.note_report(verdict)
        await self._record_activity(verdict, self._state()[1])

    def _child_spec(self) -> ChildSpec:
        """Return the program to start: the agent, or the agent continuing its last conversation.

        Raise Conflict if the agent no longer runs in a terminal.
        """
        agents, worker = self._services.agents, self.worker
        definition = agents.get(worker.agent_id or "")
        if definition.kind != "pty":
            raise Conflict(f"{definition.name} no longer runs in a terminal; start it in a new worker")
        command = agents.command(definition, self._continues(definition))
        session_id = self._conversation.acp_session_id or pty_orders.new_session_id(worker)
        base = agents.environment(definition)
        credentials = self._services.worker_credentials(worker.id, worker.run)
        more = {**TERMINAL_VARIABLES, **definition.env, **credentials}
        environment = self._services.environment(worker, self._log.snapshot.repo_id, base, more)
        log.info("starting an agent in a terminal", agent=definition.id, worker=worker.id)
        argv = fill_placeholders(command, sessionId=session_id)
        return self._spec(argv, environment, self._services.working_directory(worker))

    def _continues(self, definition: AgentDefinition) -> bool:
        """Return whether the agent can continue its last conversation."""
        return bool(definition.continue_command) and self._conversation.acp_session_id is not None

    def _background_tasks(self, child: ChildHandle) -> list[Coroutine[Any, Any, None]]:
        """Return what runs beside the terminal: the activity watch, and the sender that types prompts."""
        definition = self._definition()
        signs, keys = (definition.signs, definition.keys) if definition else (ScreenPatterns(), TypingKeys())
        read_screen = partial(self._services.screens.view, self.worker, child.recording)
        watch = ActivityWatch(read_screen, child.recording, signs, self._state, self._record_activity)
        if child.lines_written >= self._conversation.traffic.sent:
            watch.note_prompt(0)  # typed before this server adopted the child
        self._watch = watch
        sender = KeystrokeSender(self._log, self._services.store, child, keys, watch.note_prompt)
        return [*super()._background_tasks(child), watch.run(), sender.run(), self._notify_of_activity()]

    def _definition(self) -> AgentDefinition | None:
        """Return the agent's definition, or None if it was removed while the agent runs."""
        try:
            return self._services.agents.get(self.worker.agent_id or "")
        except NotFound:
            return None

    @property
    def _conversation(self) -> Conversation:
        """The stored conversation of the agent; an empty one before its first event."""
        return self._log.snapshot.conversations.get(self.worker.id, Conversation())

    def _state(self) -> tuple[Worker, Turn | None]:
        """Return the worker and its turn as they are stored."""
        return self._log.snapshot.worker(self.worker.id), self._conversation.turn

    async def _record_activity(self, verdict: JudgedActivity, turn: Turn | None) -> None:
        """Record an activity that was judged during `turn`, unless that is over; idle ends the turn."""
        typed_by_user = self._watch is not None and self._watch.may_follow_input

        def decide(change: ConversationChange) -> Change:
            pty_orders.record_activity(change, verdict, turn, typed_by_user)
            return change.build()

        await self._run.commit(decide)

    async def _notify_of_activity(self) -> None:
        """Notify the viewers of each recorded change of the activity."""
        notified = self.activity
        while True:
            if notified != self.activity:
                notified = self.activity
                self._notify_watchers()
            await self._log.growth.wait()

    def _end_fact(self, ended: ChildEnd) -> Fact:
        """Return a failure if the agent ended with an error or by a signal."""
        if ended.lost or ended.excess is not None or (ended.code == 0 and ended.signal is None):
            return super()._end_fact(ended)
        how = f"was ended by signal {ended.signal}" if ended.signal else f"crashed (exit code {ended.code})"
        error = f"it {how}; its terminal shows why"
        return WorkerFailed(error=error, exit_code=ended.code, signal=ended.signal)

    async def _record(self, fact: Fact, expected: WorkerState) -> None:
        """Record a fact of this run; the end of the run also ends its turn and its terminals."""

        def decide(snapshot: Snapshot) -> Change:
            now = snapshot.worker(self.worker.id)
            if now.run != self.worker.run or now.state is not expected:
                return Change()
            change = ConversationChange(snapshot, now.id)
            match fact:
                case WorkerFailed():
                    failure = plan_restart(now, fact, self._services.agents)
                    change.fail_run(failure, may_fail_session=expected is WorkerState.SPAWNING)
                case WorkerExited():
                    change.end_run(fact)
                case _:
                    change.record(fact)
            return change.build()

        await self._log.change(decide, patient=True)


class KeystrokeSender(OutboxSender):
    """Types the lines of the outbox.

    The key that submits a text is typed a moment after the program has drawn the text. A program that reads
    both at once takes the key as part of the text.
    """

    def __init__(
        self,
        log: SessionLog,
        store: EventStore,
        child: ChildHandle,
        keys: TypingKeys,
        on_submit: Callable[[int], None],
    ) -> None:
        super().__init__(log, store, child)
        self._keys = keys
        self._on_submit = on_submit
        self._typed_at: int | None = None  # where the recording ended before the last piece of a text

    async def _wait_before(self, line: bytes) -> None:
        """Before a submit key, wait until the program has echoed the text that was typed before it."""
        recording = self._child.recording
        if line != self._keys.submit.encode():
            self._typed_at = recording.end
            return
        if self._typed_at is not None:  # else an earlier server has typed the text
            await recording.wait_for_growth(self._typed_at, self._keys.echo)
        await asyncio.sleep(self._keys.pause)
        self._on_submit(recording.end)
