"""An agent that speaks ACP, as a worker: started or adopted, listened to, and its end recorded.

It is read by one loop (agent_reader.py); lines to it leave through the outbox (outbox_sender.py).
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
from ..log.log import Change, SessionLog
from . import acp_terminals
from .agent_reader import AgentReader
from .agent_run import AgentRun
from .children import PATIENCE, ChildEnd, ChildHandle, ChildStart
from .conversation_change import ConversationChange
from .outbox_sender import OutboxSender
from .restarts import crashed
from .worker_services import WorkerServices

log = structlog.get_logger()

GOODBYE = 1.0  # seconds to end by itself when its input ends
STDERR_TAIL = 4 << 10  # bytes
LONGEST_LINE = 200  # letters of the last line that an error quotes


class KeeperGone(BullpenError):
    """The process went with its keeper."""


class AcpAgent:
    """One run of an agent."""

    def __init__(self, worker: Worker, log: SessionLog, workshop: WorkerServices) -> None:
        self.worker = worker
        self._run = AgentRun(worker, log, workshop)
        self._workshop = workshop
        self._definition: AgentDefinition | None = None
        self._child: ChildHandle | None = None

    async def live(self) -> None:
        """The whole run: started or adopted, read to its last byte, its end recorded."""
        begun = await self._begin()
        if begun is None:
            return
        child, definition = begun
        listening = AgentReader(self._run, child, definition)
        async with asyncio.TaskGroup() as tasks:
            beside = [
                tasks.create_task(OutboxSender(self._run.log, self._workshop.store, child).carry()),
                tasks.create_task(self._answer_ends()),
                tasks.create_task(self._expect_handshake(listening)),
                tasks.create_task(self._end_with_worker()),
            ]
            await listening.listen()
            for task in beside:
                task.cancel()
        await self._record_end(listening, await asyncio.shield(child.ended))
        await self._bury(child)

    async def stop(self) -> None:
        """Ends the agent and what it left behind; the log has been told before."""
        if self._child is None:
            return
        try:
            await self._say_goodbye(self._child)
        except Exception as error:  # whatever could not be said, it ends
            log.error("no goodbye for an agent", worker=self.worker.id, exc_info=error)
        await self._child.stop(PATIENCE - GOODBYE)

    async def _say_goodbye(self, child: ChildHandle) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(GOODBYE):
                await OutboxSender(self._run.log, self._workshop.store, child).finish()
        if self._definition is None or self._definition.quirks.ends_on_eof:
            await child.close_input()
            await asyncio.wait([child.ended], timeout=GOODBYE)

    async def _begin(self) -> tuple[ChildHandle, AgentDefinition] | None:
        child = self._child = self._workshop.children.get(self.worker.id, self.worker.run)
        if not self._run.counts:  # its end was stored, and then the server died
            if child is not None:
                await self._bury(child)
            return None
        try:
            definition = self._definition = self._workshop.agents.get(self.worker.agent_id or "")
            if child is None:
                child = self._child = await self._spawn(definition)
        except Unavailable:
            raise  # it may work a moment later
        except BullpenError as error:
            await self._fail(str(error))
            if child is not None:
                await self._bury(child)
            return None
        return child, definition

    async def _spawn(self, definition: AgentDefinition) -> ChildHandle:
        conversation = self._run.log.snapshot.conversations.get(self.worker.id, Conversation())
        if self.worker.state is WorkerState.ACTIVE or conversation.traffic.sent:
            raise KeeperGone("keeper lost; whether the last prompt was delivered is not known")
        agents, repo_id = self._workshop.agents, self._run.log.snapshot.repo_id
        own_key = self._workshop.own_key(self.worker.id, self.worker.run)
        base = agents.environment(definition)
        environment = self._workshop.environment(self.worker, repo_id, base, own_key)
        start = ChildStart(
            agents.command(definition), environment, self._workshop.place(self.worker), tty=False
        )
        log.info("starting an agent", agent=definition.id, worker=self.worker.id, cwd=self.worker.workspace)
        recording = self._workshop.recording(self.worker.id, self.worker.run)
        return await self._workshop.children.spawn(self.worker.id, self.worker.run, start, recording)

    async def _fail(self, error: str, stderr: str | None = None) -> None:
        failure = WorkerFailed(error=_with_last_line(error, stderr), stderr=stderr)

        def decide(exchange: ConversationChange) -> Change:
            exchange.fail(crashed(exchange.worker, failure, self._workshop.agents))
            return exchange.change()

        await self._run.change(decide)

    async def _record_end(self, listening: AgentReader, ended: ChildEnd) -> None:
        tail = self._stderr_tail()

        def decide(exchange: ConversationChange) -> Change:
            listening.close_text(exchange)
            calm = exchange.worker.state is WorkerState.ACTIVE and exchange.conversation.turn is None
            if ended.code == 0 and calm:
                exchange.end(WorkerExited(exit_code=0))
            else:
                exchange.fail(crashed(exchange.worker, _failure(ended, tail), self._workshop.agents))
            return exchange.change()

        await self._run.change(decide)

    def _stderr_tail(self) -> str | None:
        """Return the end of what the agent wrote to its standard error."""
        _, stderr = self._workshop.tail(self.worker.id, self.worker.run, STDERR_TAIL, "err")
        return stderr.decode("utf-8", "replace").strip() or None

    async def _bury(self, child: ChildHandle) -> None:
        """Ends it if need be, and what it left behind; its keeper may forget it."""
        await child.stop()
        await child.acknowledge()
        self._workshop.children.forget(child)

    async def _answer_ends(self) -> None:
        """The agent may wait for the end of a terminal, over any number of restarts of ours."""

        def decide(exchange: ConversationChange) -> Change:
            acp_terminals.answer_ends(exchange)
            return exchange.change()

        while True:
            exchange = self._run.exchange(self._run.log.snapshot)
            if exchange is not None and acp_terminals.has_ends(exchange):
                await self._run.change(decide)
            else:
                await self._run.log.news.wait()

    async def _expect_handshake(self, listening: AgentReader) -> None:
        """Mark the worker as failed if the agent does not answer during its start."""
        timeout = self._workshop.config.agent_start_timeout
        while self._run.log.snapshot.worker(self.worker.id).state is WorkerState.SPAWNING:
            left = listening.heard + timeout - clock.monotonic()
            if left <= 0:
                await self._fail(f"it did not answer within {timeout} s", self._stderr_tail())
                return
            await asyncio.sleep(left)

    async def _end_with_worker(self) -> None:
        """A worker that failed or was ended must not leave a process behind."""
        while self._run.counts:
            await self._run.log.news.wait()
        await self.stop()


def _failure(ended: ChildEnd, stderr: str | None) -> WorkerFailed:
    if ended.lost:
        error = "keeper lost"
    elif ended.signal is not None:
        error = f"it was ended by {ended.signal}"
    else:
        error = f"it ended with exit code {ended.code}"
    error = _with_last_line(error, stderr)
    return WorkerFailed(error=error, exit_code=ended.code, signal=ended.signal, stderr=stderr)


def _with_last_line(error: str, stderr: str | None) -> str:
    return f"{error}: {stderr.splitlines()[-1][:LONGEST_LINE]}" if stderr else error
