"""Read the output of an agent in order: bytes, lines, events, and requests that the server performs.

The effect of a line is stored together with the offset up to which the output is processed. A new server
process continues at the first byte whose effect is not stored.
"""

import asyncio
from collections import deque

from .. import clock
from ..domain.agents import AgentDefinition
from ..domain.conversation import RequestAnswered
from ..domain.events import Fact
from ..domain.states import WorkerState
from ..keeper.spool import SpoolGone
from ..log.log import Change
from ..wire.acp import AcpReader, AgentTask
from ..wire.acp_joiner import ChunkJoiner
from ..wire.jsonrpc import JsonRpcPeer, Line
from . import acp_files, acp_terminals
from .acp_handshake import Handshake
from .agent_run import AgentRun
from .children import ChildHandle
from .conversation_change import ConversationChange

READ_BYTES = 256 << 10
CONSUMED_REPORT_BYTES = 1 << 20  # consumed bytes after which the keeper is told to free them


class AgentReader:
    """Reads the output of one run, from where the last server process stopped."""

    def __init__(self, run: AgentRun, child: ChildHandle, definition: AgentDefinition) -> None:
        # The start of the run; later the time of the last output after the reply to `initialize`.
        self.last_output_at = clock.monotonic()
        self._run = run
        self._child = child
        self._definition = definition
        env = run.services.agents.environment(definition)
        self._handshake = Handshake(definition=definition, env=env, pid=child.pid)
        self._reader = AcpReader(child.worker_id, child.run, definition)
        self._woken = asyncio.Event()
        self._peer = JsonRpcPeer()
        self._joiner = ChunkJoiner()
        self._lines: deque[Line] = deque()
        self._task: tuple[AgentTask, list[Fact], Line] | None = None
        self._prompt_id: str | None = None
        self._consumed = 0
        self._reported = 0

    async def run(self) -> None:
        """Read until the child has ended and its last byte is read, or the run is no longer current."""
        await self._restore()
        await self._run.commit(self._begin_handshake)
        recording = self._child.recording
        recording.watch(self._woken.set)
        self._child.ended.add_done_callback(lambda _: self._woken.set())
        try:
            while self._run.is_current:
                self._woken.clear()
                data = recording.read(self._peer.offset, READ_BYTES)
                if data:
                    await self._process(self._peer.feed(data))
                    if self._is_initialized():
                        self.last_output_at = clock.monotonic()
                elif self._child.ended.done():
                    await self._process(self._peer.finish())
                    return
                else:
                    await self._wait()
            await asyncio.shield(self._child.ended)  # its output until then is ignored
        except SpoolGone:
            await self._child.stop()  # bytes are lost, so the rest cannot be parsed
        finally:
            recording.unwatch(self._woken.set)

    def close_text(self, change: ConversationChange) -> None:
        """Record the last text as complete: no more output will follow."""
        change.record(*self._joiner.flush(closes=True))

    async def _restore(self) -> None:
        """Set the parser to the offset up to which an earlier server has stored the effects of the output.

        An open text block and the running turn are continued too.
        """
        child = self._child
        self._consumed = await self._run.services.store.consumed_offset(child.worker_id, child.run)
        conversation = self._run.log.snapshot.conversations[child.worker_id]
        self._peer = JsonRpcPeer(self._consumed, skipping=conversation.traffic.skipping)
        self._joiner = ChunkJoiner(conversation.block)
        self._prompt_id = conversation.turn.prompt_id if conversation.turn else None

    def _begin_handshake(self, change: ConversationChange) -> Change:
        """Return the change that sends the first request of a new run."""
        self._handshake.begin(change)
        return change.build()

    def _is_initialized(self) -> bool:
        """Return whether the agent has answered `initialize`."""
        traffic = self._run.log.snapshot.conversations[self._child.worker_id].traffic
        return not traffic.waits_for("initialize")

    async def _wait(self) -> None:
        """Wait for more output, and record text that has been held long enough."""
        deadline = self._joiner.deadline
        if deadline is None:
            await self._woken.wait()
            return
        try:
            async with asyncio.timeout(max(0.0, deadline - clock.monotonic())):
                await self._woken.wait()
        except TimeoutError:
            await self._process([])

    async def _process(self, lines: list[Line]) -> None:
        """Store the effects of these lines, and perform the requests among them."""
        self._lines.extend(lines)
        while True:
            await self._run.commit(self._read_lines)
            if not self._run.is_current:
                self._lines.clear()
                self._task = None
            if self._task is not None:
                await self._perform(*self._task)
            elif not self._lines:
                break
        if self._consumed - self._reported >= CONSUMED_REPORT_BYTES:
            self._reported = self._consumed
            await self._child.consume(self._consumed)

    def _read_lines(self, change: ConversationChange) -> Change:
        """Read the lines up to the next request that must be performed, as one change."""
        self._close_text_before_turn(change)
        end = self._peer.resume_offset
        while self._lines and not change.run_ended:
            line = self._lines.popleft()
            if self._read_line(change, line):
                end = line.start
                break
        if change.run_ended:
            self._lines.clear()
        change.record(*self._joiner.take_due(clock.monotonic()))
        return self._build(change, self._joiner.consumed_offset(end))

    def _read_line(self, change: ConversationChange, line: Line) -> bool:
        """Record the effect of one line; return True if it is a request that must be performed first."""
        reading = self._reader.read(line, change.conversation)
        if reading.chunk is not None:
            change.record(*self._joiner.add(reading.chunk, line, clock.monotonic()))
            return False
        if reading.ignored is not None:
            return False
        change.record(*self._joiner.flush(reading.closes_text))
        if reading.task is not None:
            self._task = (reading.task, reading.facts, line)
            return True
        change.record(*reading.facts)
        change.send(*reading.replies)
        if change.worker.state is WorkerState.SPAWNING:
            for fact in reading.facts:
                if isinstance(fact, RequestAnswered):
                    self._handshake.continue_after(change, fact, clock.now_ms())
        return False

    async def _perform(self, task: AgentTask, facts: list[Fact], line: Line) -> None:
        """Perform a request of the agent, and store the reply together with the end of the request's line."""
        reply = None
        if task.method.startswith("fs/"):
            files = self._run.services.files_of_agent(self._run.worker, self._run.log.snapshot.repo_id)
            facts, reply = await acp_files.perform(task, self._run.worker, self._definition, files)

        def decide(change: ConversationChange) -> Change:
            change.record(*facts)
            if reply is not None:
                change.send(reply)
            else:
                acp_terminals.perform(change, task, self._run.services)
            return self._build(change, line.end)

        self._task = None
        await self._run.commit(decide)

    def _close_text_before_turn(self, change: ConversationChange) -> None:
        """Complete held text when a new turn has begun: it is not part of that turn."""
        turn = change.conversation.turn
        if turn is not None and turn.prompt_id != self._prompt_id:
            self._prompt_id = turn.prompt_id
            change.record(*(fact for fact in self._joiner.flush(closes=True) if fact.text))

    def _build(self, change: ConversationChange, consumed: int) -> Change:
        """Return the change, with the consumed offset if there are events or much was read."""
        moved = consumed - self._consumed
        if change.drafts or moved >= READ_BYTES:
            self._consumed = max(self._consumed, consumed)
            return change.build(consumed=self._consumed)
        return change.build()
