"""An agent that speaks ACP, as a worker: one loop reads it, strictly in order.

What a line comes to is stored together with how far the stream is read, so that a new server process goes on
at the first byte without effect. Lines to the agent leave through the outbox (acp_post.py).
"""

import asyncio
from collections import deque

from .. import clock
from ..domain.agents import AgentDefinition
from ..domain.conversation import RequestAnswered
from ..domain.conversation_state import Conversation
from ..domain.errors import BullpenError
from ..domain.events import Fact, WorkerExited, WorkerFailed
from ..domain.snapshot import Snapshot, Worker
from ..domain.states import State
from ..keeper.marker import MARKER
from ..keeper.spool import SpoolGone
from ..log.log import Change, SessionLog
from ..wire.acp import Reader, Task
from ..wire.acp_joiner import Joiner
from ..wire.jsonrpc import Line, Peer
from . import acp_files, acp_terminals
from .acp_exchange import Exchange
from .acp_handshake import Handshake
from .acp_post import Post
from .children import Child, Ended, Start
from .workshop import Workshop

PIECE = 256 << 10
TELL_KEEPER_EVERY = 1 << 20  # bytes consumed
SILENCE = 60.0  # seconds without a word before its handshake is over
GOODBYE = 1.0  # seconds to end by itself when its input ends
STDERR_TAIL = 4 << 10


class AcpAgent:
    """One run of an agent."""

    def __init__(self, worker: Worker, log: SessionLog, workshop: Workshop) -> None:
        self.worker = worker
        self._log = log
        self._workshop = workshop
        self._definition: AgentDefinition | None = None
        self._child: Child | None = None
        self._heard = clock.monotonic()

    async def live(self) -> None:
        """The whole run: started or adopted, read to its last byte, its end recorded."""
        child = await self._begin()
        if child is None:
            return
        assert self._definition is not None
        listening = Listening(self, child, self._definition)
        async with asyncio.TaskGroup() as tasks:
            beside = [
                tasks.create_task(Post(self._log, self._workshop.store, child).carry()),
                tasks.create_task(self._answer_ends()),
                tasks.create_task(self._expect_handshake()),
                tasks.create_task(self._end_with_worker()),
            ]
            await listening.listen()
            for task in beside:
                task.cancel()
        await self._record_end(listening, await asyncio.shield(child.ended))
        await self._let_go(child)

    async def stop(self) -> None:
        """Ends the agent and what it left behind; the log has been told before."""
        child = self._child
        if child is None:
            return
        if self._definition is None or self._definition.quirks.ends_on_eof:
            await child.close_input()
            await asyncio.wait([child.ended], timeout=GOODBYE)
        await child.stop()

    def heard(self) -> None:
        """It has said something."""
        self._heard = clock.monotonic()

    def exchange(self, snapshot: Snapshot) -> Exchange | None:
        """A change of this run, unless the worker has been ended or restarted."""
        now = snapshot.worker(self.worker.id)
        return Exchange(snapshot, now.id) if now.run == self.worker.run and now.alive else None

    @property
    def log(self) -> SessionLog:
        return self._log

    @property
    def workshop(self) -> Workshop:
        return self._workshop

    async def _begin(self) -> Child | None:
        children = self._workshop.children
        child = self._child = children.get(self.worker.id, self.worker.run)
        if child is not None and not self._wanted():
            await child.stop()  # its end was stored, and then the server died
            await self._let_go(child)
            return None
        try:
            self._definition = self._workshop.agents.get(self.worker.agent_id or "")
            if child is None:
                child = self._child = await self._spawn(self._definition)
        except BullpenError as error:
            await self._fail(str(error))
            return None
        return child

    def _wanted(self) -> bool:
        return self.exchange(self._log.snapshot) is not None

    async def _spawn(self, definition: AgentDefinition) -> Child:
        conversation = self._log.snapshot.conversations.get(self.worker.id, Conversation())
        if self.worker.state is State.ACTIVE or conversation.traffic.sent:
            raise KeeperGone("keeper lost; whether the last prompt was delivered is not known")
        agents, children = self._workshop.agents, self._workshop.children
        marked = {MARKER: children.marker(self.worker.id, self.worker.run)}
        start = Start(
            agents.command(definition),
            agents.environment(definition) | marked,
            self.worker.workspace,
            tty=False,
        )
        recording = self._workshop.recording(self.worker.id, self.worker.run)
        return await children.spawn(self.worker.id, self.worker.run, start, recording)

    async def _fail(self, error: str) -> None:
        def decide(snapshot: Snapshot) -> Change:
            exchange = self.exchange(snapshot)
            if exchange is None:
                return Change()
            exchange.fail(WorkerFailed(error=error))
            return exchange.change()

        await self._log.change(decide, patient=True)

    async def _record_end(self, listening: "Listening", ended: Ended) -> None:
        _, stderr = self._workshop.tail(self.worker.id, self.worker.run, STDERR_TAIL, "err")
        tail = stderr.decode("utf-8", "replace").strip() or None

        def decide(snapshot: Snapshot) -> Change:
            exchange = self.exchange(snapshot)
            if exchange is None:
                return Change()
            listening.close_text(exchange)
            calm = exchange.worker.state is State.ACTIVE and exchange.conversation.turn is None
            if ended.code == 0 and calm:
                exchange.end(WorkerExited(exit_code=0))
            else:
                exchange.fail(_failure(ended, tail))
            return exchange.change()

        await self._log.change(decide, patient=True)

    async def _let_go(self, child: Child) -> None:
        await child.acknowledge()
        self._workshop.children.forget(child)

    async def _answer_ends(self) -> None:
        """The agent may wait for the end of a terminal, over any number of restarts of ours."""

        def decide(snapshot: Snapshot) -> Change:
            exchange = self.exchange(snapshot)
            if exchange is None:
                return Change()
            acp_terminals.answer_ends(exchange)
            return exchange.change()

        while True:
            exchange = self.exchange(self._log.snapshot)
            if exchange is not None:
                acp_terminals.answer_ends(exchange)
            if exchange is not None and exchange.drafts:
                await self._log.change(decide, patient=True)
            else:
                await self._log.news.wait()

    async def _expect_handshake(self) -> None:
        """An agent that says nothing is not waited for for ever, unless it is one that has begun."""
        while self._log.snapshot.worker(self.worker.id).state is State.SPAWNING:
            left = self._heard + SILENCE - clock.monotonic()
            if left <= 0:
                await self._fail(f"it did not answer within {SILENCE:.0f} s")
                return
            await asyncio.sleep(left)

    async def _end_with_worker(self) -> None:
        """A worker that failed or was ended must not leave a process behind."""
        while self._wanted():
            await self._log.news.wait()
        await self.stop()


class KeeperGone(BullpenError):
    """The process went with its keeper."""


class Listening:
    """The one reader of a run: bytes, lines, facts, in order."""

    def __init__(self, agent: AcpAgent, child: Child, definition: AgentDefinition) -> None:
        self._agent = agent
        self._child = child
        self._definition = definition
        self._env = agent.workshop.agents.environment(definition)
        self._handshake = Handshake(definition=definition, env=self._env, pid=child.pid)
        self._reader = Reader(child.worker_id, child.run, definition)
        self._news = asyncio.Event()
        self._peer = Peer()
        self._joiner = Joiner()
        self._lines: deque[Line] = deque()
        self._task: tuple[Task, list[Fact], Line] | None = None
        self._turn: str | None = None
        self._consumed = 0
        self._told = 0

    async def listen(self) -> None:
        """Reads until the child has ended and its last byte is read."""
        await self._take_up()
        await self._agent.log.change(self._greet, patient=True)
        recording = self._child.recording
        recording.watch(self._news.set)
        self._child.ended.add_done_callback(lambda _: self._news.set())
        try:
            while True:
                self._news.clear()
                data = recording.read(self._peer.offset, PIECE)
                if data:
                    self._agent.heard()
                    await self._take(self._peer.feed(data))
                elif self._child.ended.done():
                    await self._take(self._peer.finish())
                    return
                else:
                    await self._wait()
        except SpoolGone:
            await self._child.stop()  # what it said is lost: it cannot be understood any more
        finally:
            recording.unwatch(self._news.set)

    def close_text(self, exchange: Exchange) -> None:
        """Nothing will follow what was said last."""
        exchange.tell(*self._joiner.interrupt(closes=True))

    async def _take_up(self) -> None:
        """Where the last process stopped."""
        child = self._child
        self._consumed = await self._agent.workshop.store.consumed(child.worker_id, child.run)
        conversation = self._agent.log.snapshot.conversations[child.worker_id]
        self._peer = Peer(self._consumed, skipping=conversation.traffic.skipping)
        self._joiner = Joiner(conversation.block)
        self._turn = conversation.turn.prompt_id if conversation.turn else None

    def _greet(self, snapshot: Snapshot) -> Change:
        exchange = self._agent.exchange(snapshot)
        if exchange is None:
            return Change()
        self._handshake.begin(exchange)
        return exchange.change()

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
            await self._agent.log.change(self._read, patient=True)
            if self._task is not None:
                await self._perform(*self._task)
            elif not self._lines:
                break
        if self._consumed - self._told >= TELL_KEEPER_EVERY:
            self._told = self._consumed
            await self._child.consume(self._consumed)

    def _read(self, snapshot: Snapshot) -> Change:
        """All lines up to one that wants something done, as one change."""
        exchange = self._agent.exchange(snapshot)
        if exchange is None:
            self._lines.clear()
            return Change()
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

    def _read_line(self, exchange: Exchange, line: Line) -> bool:
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
        if exchange.worker.state is State.SPAWNING:
            for fact in reading.facts:
                if isinstance(fact, RequestAnswered):
                    self._handshake.go_on(exchange, fact, clock.now_ms())
        return False

    async def _perform(self, task: Task, facts: list[Fact], line: Line) -> None:
        """Does what the agent wants; the answer is stored with the end of its line."""
        reply = None
        if task.method.startswith("fs/"):
            facts, reply = await acp_files.perform(task, self._agent.worker, self._definition)

        def decide(snapshot: Snapshot) -> Change:
            exchange = self._agent.exchange(snapshot)
            if exchange is None:
                return Change()
            exchange.tell(*facts)
            if reply is not None:
                exchange.say(reply)
            else:
                acp_terminals.perform(exchange, task, self._agent.workshop)
            return self._change(exchange, line.end)

        self._task = None
        await self._agent.log.change(decide, patient=True)

    def _notice_turn(self, exchange: Exchange) -> None:
        """Text that still waits when a new turn has begun belongs to none of its blocks."""
        turn = exchange.conversation.turn
        if turn is not None and turn.prompt_id != self._turn:
            self._turn = turn.prompt_id
            exchange.tell(*(fact for fact in self._joiner.interrupt(closes=True) if fact.text))

    def _change(self, exchange: Exchange, consumed: int) -> Change:
        """With how far the stream is read, when that is worth a commit."""
        moved = consumed - self._consumed
        if exchange.drafts or moved >= PIECE:
            self._consumed = max(self._consumed, consumed)
            return exchange.change(consumed=self._consumed)
        return exchange.change()


def _failure(ended: Ended, stderr: str | None) -> WorkerFailed:
    if ended.lost:
        error = "keeper lost"
    elif ended.signal is not None:
        error = f"it was ended by {ended.signal}"
    else:
        error = f"it ended with exit code {ended.code}"
    if stderr:
        error = f"{error}: {stderr.splitlines()[-1][:200]}"
    return WorkerFailed(error=error, exit_code=ended.code, signal=ended.signal, stderr=stderr)
