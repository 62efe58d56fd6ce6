"""Run a program in a terminal as a worker: record its start and end, and answer its terminal queries.

One task per run reads the output, only to answer queries to the terminal. Viewers read the recording by
themselves.
"""

import asyncio
import os
import pwd
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from .. import clock
from ..domain.errors import BullpenError, Conflict, Unavailable
from ..domain.events import Draft, Fact, WorkerExited, WorkerFailed, WorkerReady
from ..domain.snapshot import Snapshot, Worker
from ..domain.states import WorkerState
from ..log.log import Change, SessionLog
from ..log.recording import Recording
from .children import ChildEnd, ChildHandle, ChildSpec, program_end
from .query_scanner import FLOOD_BYTES, QueryScanner
from .screen import QueryReply, ScreenHistory
from .window import TerminalWindow, WindowSize
from .worker_services import WorkerServices, user_environment

FLOOD_INTERVAL = 0.004  # seconds between two reads of a flood
REPLIES_PER_STEP = 64  # typed before other tasks run
MAX_QUERY_AGE_NS = 2_000_000_000  # older queries are counted but not answered


class TerminalActivity(NamedTuple):
    """The activity of an agent in a terminal, the reason for this judgement, and its start time."""

    activity: str
    why: str
    since: int


class TerminalWorker:
    """One run of a terminal worker."""

    def __init__(self, worker: Worker, log: SessionLog, services: WorkerServices) -> None:
        self.worker = worker
        self.window = TerminalWindow(WindowSize(worker.cols, worker.rows))
        self.child: ChildHandle | None = None
        self.ended = _known_end(worker)
        self.replaced = False  # by a later run
        self._started = asyncio.Event()
        self._woken = asyncio.Event()  # wakes the task that answers queries: more output, or another size
        self._resized = False
        self._watchers: set[Callable[[], None]] = set()
        self._log = log
        self._services = services

    @cached_property
    def recording(self) -> Recording:
        """The recording of this run, opened on first use.

        The constructor opens nothing: it runs while a change is being accepted, where it must not fail.
        """
        return self._services.recording(self.worker.id, self.worker.run)

    async def run(self) -> None:
        """Start or adopt the program, serve it, and record its end after its last output."""
        child = await self._start_or_adopt()
        if child is None and self.ended is None:
            self.ended = ChildEnd(None, None)  # its viewers must not wait for output
        self._started.set()
        if child is None:
            self._notify_watchers()
            return
        async with asyncio.TaskGroup() as tasks:
            background = [tasks.create_task(each) for each in self._background_tasks(child)]
            ended = program_end(await asyncio.shield(child.ended), self.worker)
            for task in background:
                task.cancel()
        await self._record(self._end_fact(ended), WorkerState.ACTIVE)
        self.ended = ended
        self._notify_watchers()
        await child.acknowledge()
        self._services.children.forget(child)

    async def stop(self) -> None:
        """End the program and the processes it left behind. The caller has recorded the end."""
        self._started.set()  # no program will start: viewers that wait for it must go on
        if self.child is not None:
            await self.child.stop()

    @property
    def activity(self) -> TerminalActivity | None:
        """What an agent in this terminal does; None for a shell, whose activity is unknown."""
        return None

    @property
    def has_started(self) -> bool:
        """Whether the program runs or has run."""
        return self.ended is not None or self._started.is_set()

    async def wait_started(self) -> None:
        """Wait until the program runs: the client that has just created the terminal may type at once."""
        if not self.has_started:
            await self._started.wait()

    def write(self, viewer: str, writer: str, n: int, data: bytes) -> asyncio.Future[int]:
        """Type input number `n` of a writer; the result is the last number that the keeper has accepted.

        The terminal gets the size of the viewer who types.
        """
        child = self._running_child()
        if self.window.owner != viewer and (size := self.window.take_by_input(viewer)):
            child.resize(*size, self._on_resized)
        return child.write(writer, n, data)

    async def resize(self, viewer: str, size: WindowSize, *, take: bool = False) -> None:
        """Note the size that a viewer can show; apply it if the viewer owns or takes the window."""
        await self.wait_started()
        if (new_size := self.window.request_size(viewer, size, take=take)) and self.ended is None:
            self._running_child().resize(*new_size, self._on_resized)

    def mark_replaced(self) -> None:
        """Notify the viewers that a later run has replaced this one."""
        self.replaced = True
        self._notify_watchers()

    def add_watcher(self, watcher: Callable[[], None]) -> None:
        """Call `watcher` when this run ends, is replaced, or has another activity."""
        self._watchers.add(watcher)

    def remove_watcher(self, watcher: Callable[[], None]) -> None:
        """Undo `add_watcher`."""
        self._watchers.discard(watcher)

    async def history(self) -> ScreenHistory:
        """Return the bytes that make the empty terminal of a new viewer show this screen."""
        return await self._services.screens.history(self.worker, self.recording)

    def _notify_watchers(self) -> None:
        """Call all watchers; a watcher may remove itself."""
        for watcher in tuple(self._watchers):
            watcher()

    def _running_child(self) -> ChildHandle:
        """Return the child, or raise Conflict if the program has ended."""
        if self.child is None or self.child.ended.done():
            raise Conflict(f"the terminal in role {self.worker.role} has ended")
        return self.child

    async def _start_or_adopt(self) -> ChildHandle | None:
        """Return the running child, or None if there is none; a failure is recorded then."""
        children = self._services.children
        child = children.get(self.worker.id, self.worker.run)
        if child is None and not self.worker.alive:  # its end was stored before the server died
            return None
        if child is None and self.worker.state is WorkerState.ACTIVE:
            await self._record(WorkerFailed(error="keeper lost"), WorkerState.ACTIVE)
            return None
        if child is None:
            try:
                child = await children.spawn(
                    self.worker.id, self.worker.run, self._child_spec(), self.recording
                )
            except Unavailable:
                raise  # the caller tries again
            except BullpenError as error:
                await self._record(WorkerFailed(error=str(error)), WorkerState.SPAWNING)
                return None
        self.child = child
        await self._record(WorkerReady(pid=child.pid), WorkerState.SPAWNING)
        if self._must_end(child):
            await child.stop()
        return child

    def _must_end(self, child: ChildHandle) -> bool:
        """Return whether the worker's end was stored while the child started, or before the last server died.

        Processes that a program left behind when it exited by itself keep running, unless the worker was
        terminated.
        """
        now = self._log.snapshot.worker(self.worker.id)
        if now.state is WorkerState.TERMINATED:
            return True
        return not child.ended.done() and (now.run != self.worker.run or not now.alive)

    def _background_tasks(self, child: ChildHandle) -> list[Coroutine[Any, Any, None]]:
        """Return what runs as long as the program runs."""
        return [self._answer_queries(child), self._services.sandbox.serve_proxy(self._log, self.worker)]

    def _child_spec(self) -> ChildSpec:
        """Return the program to start: the user's shell."""
        shell = os.environ.get("SHELL") or pwd.getpwuid(os.getuid()).pw_shell or "/bin/sh"
        environment = self._services.environment(self.worker, self._log.snapshot.repo_id, user_environment())
        directory = self._services.working_directory(self.worker)
        return self._spec([shell], environment, directory)

    def _spec(self, argv: Sequence[str], environment: Mapping[str, str], directory: str) -> ChildSpec:
        """Return how to start a program in this terminal, in the sandbox of this run."""
        sandbox = self._services.sandbox.profile(self._log.snapshot, self.worker, environment, directory)
        return ChildSpec(argv, environment, directory, sandbox, self.worker.cols, self.worker.rows)

    def _end_fact(self, ended: ChildEnd) -> Fact:
        """Return the fact that records how the program ended."""
        if ended.excess is not None:
            return WorkerFailed(error=ended.excess, exit_code=ended.code, signal=ended.signal)
        if ended.lost:
            return WorkerFailed(error="keeper lost")
        return WorkerExited(exit_code=ended.code, signal=ended.signal)

    async def _record(self, fact: Fact, expected: WorkerState) -> None:
        """Record a fact of this run, if the worker is still in this run and in the state `expected`."""

        def decide(snapshot: Snapshot) -> Change:
            now = snapshot.worker(self.worker.id)
            if now.run != self.worker.run or now.state is not expected:
                return Change()
            return Change(drafts=[Draft(fact, now.id, now.role)])

        await self._log.change(decide, patient=True)

    async def _answer_queries(self, child: ChildHandle) -> None:
        """Scan all output once. The screen is fed only when the output may contain a query."""
        recording = child.recording
        start = self._services.screens.start_run(self.worker, recording, child.replies_written)
        is_behind = start < recording.end
        answer_from = recording.offset_at(clock.now_ns() - MAX_QUERY_AGE_NS) if is_behind else start
        scanner = QueryScanner(recording, start, self._woken)
        self._woken.set()  # for the output before this
        recording.watch(scanner.scan)
        try:
            while True:
                await self._woken.wait()
                await self._answer(child, scanner, answer_from)
                self._woken.clear()
        finally:
            recording.unwatch(scanner.scan)
            self._services.screens.end_run(self.worker)

    async def _answer(self, child: ChildHandle, scanner: QueryScanner, answer_from: int) -> None:
        """Feed the screen what was printed, and type its replies."""
        while (piece := scanner.read_next()) or self._resized:
            if scanner.advance(piece) or self._resized:
                self._resized = False
                screens, recording = self._services.screens, child.recording
                replies = await screens.advance(self.worker, recording, scanner.offset, answer_from)
                await _type_replies(child, replies)
            if len(piece) > FLOOD_BYTES:
                await asyncio.sleep(FLOOD_INTERVAL)

    def _on_resized(self) -> None:
        """Wake the task that answers queries: a program may have asked for reports of its size."""
        self._resized = True
        self._woken.set()


async def _type_replies(child: ChildHandle, replies: Sequence[QueryReply]) -> None:
    """Type each reply under its number. Let other tasks run: a program may send queries without end."""
    for count, reply in enumerate(replies, 1):
        child.type_reply(reply.n, reply.data)
        if count % REPLIES_PER_STEP == 0:
            await asyncio.sleep(0)


def _known_end(worker: Worker) -> ChildEnd | None:
    """Return how a worker ended, or None if it runs."""
    return None if worker.alive else ChildEnd(worker.exit_code, worker.signal)
