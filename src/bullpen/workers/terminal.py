"""A program on a pty, as a worker: its life in the log, its bytes in a recording.

One pump reads what the program says, only to answer what programs ask of a terminal; viewers read the
recording by themselves.
"""

import asyncio
import os
import pwd
from collections.abc import Callable, Coroutine, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from .. import clock
from ..domain.errors import BullpenError, Conflict, Unavailable
from ..domain.events import Draft, Fact, WorkerExited, WorkerFailed, WorkerReady
from ..domain.snapshot import Snapshot, Worker
from ..domain.states import WorkerState
from ..log.log import Change, SessionLog
from ..log.recording import Recording
from .children import ChildEnd, ChildHandle, ChildStart
from .query_scanner import FLOOD, QueryScanner
from .screen import QueryReply, ScreenHistory
from .window import TerminalWindow, WindowSize
from .worker_services import WorkerServices, personal

PACE = 0.004  # seconds between two looks at a flood
REPLIES_AT_ONCE = 64
TOO_LATE_NS = 2_000_000_000  # an older question is counted, not answered


class TerminalActivity(NamedTuple):
    """What an agent in a terminal does, why we think so, and since when."""

    activity: str
    why: str
    since: int


class TerminalWorker:
    """One run of a terminal worker."""

    def __init__(self, worker: Worker, log: SessionLog, workshop: WorkerServices) -> None:
        self.worker = worker
        self.window = TerminalWindow(WindowSize(worker.cols, worker.rows))
        self.child: ChildHandle | None = None
        self.ended = _known_end(worker)
        self.replaced = False  # by a later run
        self._begun = asyncio.Event()
        self._news = asyncio.Event()  # for the one who answers: more output, or another size
        self._resized = False
        self._watchers: set[Callable[[], None]] = set()
        self._log = log
        self._workshop = workshop

    @cached_property
    def recording(self) -> Recording:
        """The recording of this run, opened on first use.

        The constructor opens nothing: it runs while a change is being accepted, where it must not fail.
        """
        return self._workshop.recording(self.worker.id, self.worker.run)

    async def live(self) -> None:
        """The whole run: started or adopted, watched, its end recorded after its last byte."""
        child = await self._begin()
        self._begun.set()
        if child is None:
            return
        async with asyncio.TaskGroup() as tasks:
            beside = [tasks.create_task(each) for each in self._beside(child)]
            ended = await asyncio.shield(child.ended)
            for task in beside:
                task.cancel()
        await self._record(self._last_fact(ended), WorkerState.ACTIVE)
        self.ended = ended
        self._tell()
        await child.acknowledge()
        self._workshop.children.forget(child)

    async def stop(self) -> None:
        """End the program and what it left behind; the log has been told before."""
        self._begun.set()  # no program will start: a viewer that waits for one is told so
        if self.child is not None:
            await self.child.stop()

    @property
    def doing(self) -> TerminalActivity | None:
        """None: nobody knows what goes on in a shell."""
        return None

    @property
    def has_begun(self) -> bool:
        """Whether there is, or was, a program to type to."""
        return self.ended is not None or self._begun.is_set()

    async def begun(self) -> None:
        """Waits until there is a program to type to: whoever made the terminal may type at once."""
        if not self.has_begun:
            await self._begun.wait()

    def write(self, viewer: str, writer: str, n: int, data: bytes) -> asyncio.Future[int]:
        """Types for a viewer, in the order of the calls; done when the keeper has it.

        The keeper takes each number of a writer once, in order.
        """
        child = self._living()
        if self.window.owner != viewer and (size := self.window.use(viewer)):
            child.resize(*size, self._has_new_size)
        return child.write(writer, n, data)

    async def resize(self, viewer: str, size: WindowSize, *, take: bool = False) -> None:
        await self.begun()
        if (wanted := self.window.wish(viewer, size, take=take)) and self.ended is None:
            self._living().resize(*wanted, self._has_new_size)

    def replace(self) -> None:
        """A later run takes this one's place: its viewers move on."""
        self.replaced = True
        self._tell()

    def on_change(self, watcher: Callable[[], None]) -> None:
        """Calls `watcher` when this run has ended, was replaced, or does something else."""
        self._watchers.add(watcher)

    def off_change(self, watcher: Callable[[], None]) -> None:
        self._watchers.discard(watcher)

    async def history(self) -> ScreenHistory:
        """What a newcomer's terminal must be fed to show this screen."""
        return await self._workshop.screens.history(self.worker, self.recording)

    def _tell(self) -> None:
        for watcher in tuple(self._watchers):
            watcher()

    def _living(self) -> ChildHandle:
        if self.child is None or self.child.ended.done():
            raise Conflict(f"the terminal in role {self.worker.role} has ended")
        return self.child

    async def _begin(self) -> ChildHandle | None:
        children = self._workshop.children
        child = children.get(self.worker.id, self.worker.run)
        if child is None and not self.worker.alive:  # its end was stored, and then the server died
            return None
        if child is None and self.worker.state is WorkerState.ACTIVE:
            await self._record(WorkerFailed(error="keeper lost"), WorkerState.ACTIVE)
            return None
        if child is None:
            try:
                child = await children.spawn(self.worker.id, self.worker.run, self._start(), self.recording)
            except Unavailable:
                raise  # it may work a moment later
            except BullpenError as error:
                await self._record(WorkerFailed(error=str(error)), WorkerState.SPAWNING)
                return None
        self.child = child
        await self._record(WorkerReady(pid=child.pid), WorkerState.SPAWNING)
        if self._must_end(child):
            await child.stop()
        return child

    def _must_end(self, child: ChildHandle) -> bool:
        """Whether its end was stored while it began, or by a server that died before it could end it.

        What a program that ended by itself left running is let be, unless its worker was ended for good.
        """
        now = self._log.snapshot.worker(self.worker.id)
        if now.state is WorkerState.TERMINATED:
            return True
        return not child.ended.done() and (now.run != self.worker.run or not now.alive)

    def _beside(self, child: ChildHandle) -> list[Coroutine[Any, Any, None]]:
        """What goes on as long as the program runs."""
        return [self._answer_questions(child)]

    def _start(self) -> ChildStart:
        shell = os.environ.get("SHELL") or pwd.getpwuid(os.getuid()).pw_shell or "/bin/sh"
        environment = self._workshop.environment(self.worker, self._log.snapshot.repo_id, personal())
        place = self._workshop.place(self.worker)
        return ChildStart([shell], environment, place, self.worker.cols, self.worker.rows)

    def _last_fact(self, ended: ChildEnd) -> Fact:
        if ended.lost:
            return WorkerFailed(error="keeper lost")
        return WorkerExited(exit_code=ended.code, signal=ended.signal)

    async def _record(self, fact: Fact, expected: WorkerState) -> None:
        """Appends a fact of this run, unless the worker has meanwhile been ended or restarted."""

        def decide(snapshot: Snapshot) -> Change:
            now = snapshot.worker(self.worker.id)
            if now.run != self.worker.run or now.state is not expected:
                return Change()
            return Change(drafts=[Draft(fact, now.id, now.role)])

        await self._log.change(decide, patient=True)

    async def _answer_questions(self, child: ChildHandle) -> None:
        """Hears every byte once; only bytes that may ask something reach the screen at once."""
        recording = child.recording
        seen = self._workshop.screens.begin(self.worker, recording, child.answered)
        fresh = recording.offset_at(clock.now_ns() - TOO_LATE_NS) if seen < recording.end else seen
        ear = QueryScanner(recording, seen, self._news)
        self._news.set()  # for what was said before
        recording.watch(ear.glance)
        try:
            while True:
                await self._news.wait()
                await self._answer(child, ear, fresh)
                self._news.clear()
        finally:
            recording.unwatch(ear.glance)
            self._workshop.screens.end(self.worker)

    async def _answer(self, child: ChildHandle, ear: QueryScanner, fresh: int) -> None:
        while (piece := ear.next()) or self._resized:
            if ear.take(piece) or self._resized:
                self._resized = False
                screens, recording = self._workshop.screens, child.recording
                await _type_replies(child, await screens.advance(self.worker, recording, ear.seen, fresh))
            if len(piece) > FLOOD:
                await asyncio.sleep(PACE)

    def _has_new_size(self) -> None:
        """A program may have asked to be told of every new size."""
        self._resized = True
        self._news.set()


async def _type_replies(child: ChildHandle, replies: Sequence[QueryReply]) -> None:
    """Each under its number; a program that asks without end waits for its turn like everybody."""
    for count, reply in enumerate(replies, 1):
        child.answer(reply.n, reply.data)
        if count % REPLIES_AT_ONCE == 0:
            await asyncio.sleep(0)


def _known_end(worker: Worker) -> ChildEnd | None:
    return None if worker.alive else ChildEnd(worker.exit_code, worker.signal)
