"""Run an agent that speaks ACP as a worker: start or adopt it, read it, and record its end.

One loop reads its output (agent_reader.py); lines to it are sent through the outbox (outbox_sender.py).
"""

import asyncio
from contextlib import suppress

import structlog

from .. import clock
from ..domain.agents import AgentDefinition
from ..domain.conversation_state import Conversation
from ..domain.errors import BullpenError, Unavailable
from ..domain.events import WorkerExited, WorkerFailed
from ..domain.snapshot import Worker
from ..domain.states import WorkerState
from ..intervals import intervals
from ..log.log import Change, SessionLog
from . import acp_terminals
from .agent_reader import AgentReader
from .agent_run import AgentRun
from .children import ChildEnd, ChildHandle, ChildSpec, program_end
from .conversation_change import ConversationChange
from .outbox_sender import OutboxSender
from .restarts import plan_restart
from .worker_services import WorkerServices

log = structlog.get_logger()

GRACE_SHARE = 0.2  # of the time to stop, for an agent to end by itself when its input ends
STDERR_TAIL_BYTES = 4 << 10
MAX_QUOTE_LENGTH = 200  # characters of the last line of stderr that an error quotes


class KeeperGone(BullpenError):
    """The process of the agent ended together with its keeper."""


class AcpAgent:
    """One run of an agent that speaks ACP."""

    def __init__(self, worker: Worker, log: SessionLog, services: WorkerServices) -> None:
        self.worker = worker
        self._run = AgentRun(worker, log, services)
        self._services = services
        self._definition: AgentDefinition | None = None
        self._child: ChildHandle | None = None

    async def run(self) -> None:
        """Start or adopt the agent, read its output to the last byte, and record its end."""
        started = await self._start_or_adopt()
        if started is None:
            return
        child, definition = started
        reader = AgentReader(self._run, child, definition)
        async with asyncio.TaskGroup() as tasks:
            background = [
                tasks.create_task(OutboxSender(self._run.log, self._services.store, child).run()),
                tasks.create_task(self._answer_terminal_exits()),
                tasks.create_task(self._limit_handshake(reader)),
                tasks.create_task(self._end_with_worker()),
                tasks.create_task(self._services.sandbox.serve_proxy(self._run.log, self.worker)),
            ]
            await reader.run()
            for task in background:
                task.cancel()
        await self._record_end(reader, program_end(await asyncio.shield(child.ended), self.worker))
        await self._end_and_forget(child)

    async def stop(self) -> None:
        """End the agent and the processes it left behind. The caller has recorded the end."""
        if self._child is None:
            return
        grace = intervals().stop * GRACE_SHARE
        try:
            await self._ask_to_end(self._child, grace)
        except Exception as error:  # it is stopped all the same
            log.error("an agent could not be asked to end", worker=self.worker.id, exc_info=error)
        await self._child.stop(intervals().stop - grace)

    async def _ask_to_end(self, child: ChildHandle, grace: float) -> None:
        """Send the agent what is in its outbox, close its input, and give it time to end by itself."""
        with suppress(TimeoutError):
            async with asyncio.timeout(grace):
                await OutboxSender(self._run.log, self._services.store, child).flush()
        if self._definition is None or self._definition.quirks.ends_on_eof:
            await child.close_input()
            await asyncio.wait([child.ended], timeout=grace)

    async def _start_or_adopt(self) -> tuple[ChildHandle, AgentDefinition] | None:
        """Return the child and the agent's definition, or None after recording why it cannot run."""
        child = self._child = self._services.children.get(self.worker.id, self.worker.run)
        if not self._run.is_current:  # its end was stored before the server died
            if child is not None:
                await self._end_and_forget(child)
            return None
        try:
            definition = self._definition = self._services.agents.get(self.worker.agent_id or "")
            if child is None:
                child = self._child = await self._spawn(definition)
        except Unavailable:
            raise  # the caller tries again
        except BullpenError as error:
            await self._fail(str(error))
            if child is not None:
                await self._end_and_forget(child)
            return None
        return child, definition

    async def _spawn(self, definition: AgentDefinition) -> ChildHandle:
        """Start the process of the agent; raise KeeperGone if this run has begun before."""
        conversation = self._run.log.snapshot.conversations.get(self.worker.id, Conversation())
        if self.worker.state is WorkerState.ACTIVE or conversation.traffic.sent:
            raise KeeperGone("keeper lost; whether the last prompt was delivered is not known")
        agents, repo_id = self._services.agents, self._run.log.snapshot.repo_id
        credentials = self._services.worker_credentials(self.worker.id, self.worker.run)
        base = agents.environment(definition)
        environment = self._services.environment(self.worker, repo_id, base, credentials)
        directory = self._services.working_directory(self.worker)
        sandbox = self._services.sandbox.profile(self._run.log.snapshot, self.worker, environment, directory)
        spec = ChildSpec(agents.command(definition), environment, directory, sandbox, tty=False)
        log.info("starting an agent", agent=definition.id, worker=self.worker.id, cwd=self.worker.workspace)
        recording = self._services.recording(self.worker.id, self.worker.run)
        return await self._services.children.spawn(self.worker.id, self.worker.run, spec, recording)

    async def _fail(self, error: str, stderr: str | None = None) -> None:
        """Record that the run has failed."""
        failure = WorkerFailed(error=_with_last_line(error, stderr), stderr=stderr)

        def decide(change: ConversationChange) -> Change:
            change.fail_run(plan_restart(change.worker, failure, self._services.agents))
            return change.build()

        await self._run.commit(decide)

    async def _record_end(self, reader: AgentReader, ended: ChildEnd) -> None:
        """Record the end of the process: an exit if it ended with code 0 while idle, else a failure.

        A failure may plan a restart.
        """
        tail = self._stderr_tail()

        def decide(change: ConversationChange) -> Change:
            reader.close_text(change)
            was_idle = change.worker.state is WorkerState.ACTIVE and change.conversation.turn is None
            if ended.code == 0 and was_idle and ended.excess is None:
                change.end_run(WorkerExited(exit_code=0))
            else:
                change.fail_run(plan_restart(change.worker, _failure(ended, tail), self._services.agents))
            return change.build()

        await self._run.commit(decide)

    def _stderr_tail(self) -> str | None:
        """Return the end of what the agent wrote to its standard error, or None if it wrote nothing."""
        _, stderr = self._services.read_tail(self.worker.id, self.worker.run, STDERR_TAIL_BYTES, "err")
        return stderr.decode("utf-8", "replace").strip() or None

    async def _end_and_forget(self, child: ChildHandle) -> None:
        """End the child and the processes it left behind, and let the keeper forget it."""
        await child.stop()
        await child.acknowledge()
        self._services.children.forget(child)

    async def _answer_terminal_exits(self) -> None:
        """Answer requests that wait for the exit of a terminal, also those from before a server restart."""

        def decide(change: ConversationChange) -> Change:
            acp_terminals.answer_exits(change)
            return change.build()

        while True:
            change = self._run.begin_change(self._run.log.snapshot)
            if change is not None and acp_terminals.has_awaited_exits(change):
                await self._run.commit(decide)
            else:
                await self._run.log.growth.wait()

    async def _limit_handshake(self, reader: AgentReader) -> None:
        """Mark the worker as failed if the agent does not answer during its start."""
        timeout = self._services.config.agent_start_timeout
        while self._run.log.snapshot.worker(self.worker.id).state is WorkerState.SPAWNING:
            left = reader.last_output_at + timeout - clock.monotonic()
            if left <= 0:
                await self._fail(f"it did not answer within {timeout} s", self._stderr_tail())
                return
            await asyncio.sleep(left)

    async def _end_with_worker(self) -> None:
        """End the process when the worker has failed or was ended by a user."""
        while self._run.is_current:
            await self._run.log.growth.wait()
        await self.stop()


def _failure(ended: ChildEnd, stderr: str | None) -> WorkerFailed:
    """Return the failure of a process: its exit code or signal, and the last line of its stderr."""
    if ended.excess is not None:
        return WorkerFailed(error=ended.excess, exit_code=ended.code, signal=ended.signal, stderr=stderr)
    if ended.lost:
        error = "keeper lost"
    elif ended.signal is not None:
        error = f"it was ended by signal {ended.signal}"
    else:
        error = f"it crashed (exit code {ended.code})"
    error = _with_last_line(error, stderr)
    return WorkerFailed(error=error, exit_code=ended.code, signal=ended.signal, stderr=stderr)


def _with_last_line(error: str, stderr: str | None) -> str:
    """Return the error with the last line of stderr."""
    return f"{error}: {stderr.splitlines()[-1][:MAX_QUOTE_LENGTH]}" if stderr else error
