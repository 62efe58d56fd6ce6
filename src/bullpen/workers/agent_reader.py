"""The one reader of an agent: bytes, lines, facts, strictly in order.

What a line comes to is stored together with how far the stream is read, so that a new server process goes on
at the first byte without effect.
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

PIECE = 256 << 10
TELL_KEEPER_EVERY = 1 << 20  # bytes consumed


class AgentReader:
    """Reads one run from where the last process stopped."""

    def __init__(self, run: AgentRun, child: ChildHandle, definition: AgentDefinition) -> None:
        self.heard = (
            clock.monotonic()
        )  # when the start began, then when the agent last wrote after `initialize`
        self._run = run
        self._child = child
        self._definition = definition
        env = run.workshop.agents.environment(definition)
        self._handshake = Handshake(definition=definition, env=env, pid=child.pid)
        self._reader = AcpReader(child.worker_id, child.run, definition)
        self._news = asyncio.Event()
        self._peer = JsonRpcPeer()
        self._joiner = ChunkJoiner()
        self._lines: deque[Line] = deque()
        self._task: tuple[AgentTask, list[Fact], Line] | None = None
        self._turn: str | None = None
        self._consumed = 0
        self._told = 0

    async def listen(self) -> None:
        """Reads until the child has ended and its last byte is read."""
        await self._take_up()
        await self._run.change(self._greet)
        recording = self._child.recording
        recording.watch(self._news.set)
        self._child.ended.add_done_callback(lambda _: self._news.set())
        try:
            while self._run.counts:
                self._news.clear()
                data = recording.read(self._peer.offset, PIECE)
                if data:
                    await self._take(self._peer.feed(data))
                    if self._is_initialized():
                        self.heard = clock.monotonic()
                elif self._child.ended.done():
                    await self._take(self._peer.finish())
                    return
                else:
                    await self._wait()
            await asyncio.shield(self._child.ended)  # whatever it says until then counts no more
        except SpoolGone:
            await self._child.stop()  # what it said is lost: it cannot be understood any more
        finally:
            recording.unwatch(self._news.set)

    def close_text(self, exchange: ConversationChange) -> None:
        """Nothing will follow what was said last."""
        exchange.tell(*self._joiner.interrupt(closes=True))

    async def _take_up(self) -> None:
        """Where the last process stopped."""
        child = self._child
        self._consumed = await self._run.workshop.store.consumed(child.worker_id, child.run)
        conversation = self._run.log.snapshot.conversations[child.worker_id]
        self._peer = JsonRpcPeer(self._consumed, skipping=conversation.traffic.skipping)
        self._joiner = ChunkJoiner(conversation.block)
        self._turn = conversation.turn.prompt_id if conversation.turn else None

    def _greet(self, exchange: ConversationChange) -> Change:
        self._handshake.begin(exchange)
        return exchange.change()

    def _is_initialized(self) -> bool:
        traffic = self._run.log.snapshot.conversations[self._child.worker_id].traffic
        return not traffic.waits_for("initialize")

    async def _wait(self) -> None:
        """Until there is more, or text has waited long enough."""
        deadline = self._joiner.deadline
        if deadline is None:
            await self._news.wait()
            return
        try:
            async with asyncio.timeout(max(0.0, deadline - clock.monotonic())):
                await self._news.wait()
        except TimeoutError:
            await self._take([])

    async def _take(self, lines: list[Line]) -> None:
        self._lines.extend(lines)
        while True:
            await self._run.change(self._read)
            if not self._run.counts:
                self._lines.clear()
                self._task = None
            if self._task is not None:
                await self._perform(*self._task)
            elif not self._lines:
                break
        if self._consumed - self._told >= TELL_KEEPER_EVERY:
            self._told = self._consumed
            await self._child.consume(self._consumed)

    def _read(self, exchange: ConversationChange) -> Change:
        """All lines up to one that wants something done, as one change."""
        self._notice_turn(exchange)
        end = self._peer.passed
        while self._lines and not exchange.over:
            line = self._lines.popleft()
            if self._read_line(exchange, line):
                end = line.start
                break
        if exchange.over:
            self._lines.clear()
        exchange.tell(*self._joiner.due(clock.monotonic()))
        return self._change(exchange, self._joiner.consumed(end))

    def _read_line(self, exchange: ConversationChange, line: Line) -> bool:
        """Reads one line into the exchange; whether it wants something done first."""
        reading = self._reader.read(line, exchange.conversation)
        if reading.chunk is not None:
            exchange.tell(*self._joiner.add(reading.chunk, line, clock.monotonic()))
            return False
        if reading.ignored is not None:
            return False
        exchange.tell(*self._joiner.interrupt(reading.closes_text))
        if reading.task is not None:
            self._task = (reading.task, reading.facts, line)
            return True
        exchange.tell(*reading.facts)
        exchange.say(*reading.replies)
        if exchange.worker.state is WorkerState.SPAWNING:
            for fact in reading.facts:
                if isinstance(fact, RequestAnswered):
                    self._handshake.go_on(exchange, fact, clock.now_ms())
        return False

    async def _perform(self, task: AgentTask, facts: list[Fact], line: Line) -> None:
        """Does what the agent wants; the answer is stored with the end of its line."""
        reply = None
        if task.method.startswith("fs/"):
            facts, reply = await acp_files.perform(
                task, self._run.worker, self._definition, self._run.workshop.files(self._run.worker.workspace)
            )

        def decide(exchange: ConversationChange) -> Change:
            exchange.tell(*facts)
            if reply is not None:
                exchange.say(reply)
            else:
                acp_terminals.perform(exchange, task, self._run.workshop)
            return self._change(exchange, line.end)

        self._task = None
        await self._run.change(decide)

    def _notice_turn(self, exchange: ConversationChange) -> None:
        """Text that still waits when a new turn has begun belongs to none of its blocks."""
        turn = exchange.conversation.turn
        if turn is not None and turn.prompt_id != self._turn:
            self._turn = turn.prompt_id
            exchange.tell(*(fact for fact in self._joiner.interrupt(closes=True) if fact.text))

    def _change(self, exchange: ConversationChange, consumed: int) -> Change:
        """With how far the stream is read, when that is worth a commit."""
        moved = consumed - self._consumed
        if exchange.drafts or moved >= PIECE:
            self._consumed = max(self._consumed, consumed)
            return exchange.change(consumed=self._consumed)
        return exchange.change()
