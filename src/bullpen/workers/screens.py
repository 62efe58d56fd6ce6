"""Keep the emulated screens of terminals in memory: load each on first use, save it before it is dropped.

Two threads that use one Ghostty terminal at the same time crash it, so each screen has a lock. All screens
share a few threads. A screen is only a cache of the recording and can always be computed again.
"""

import asyncio
import shutil
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from ..domain.snapshot import Worker
from ..log.recording import Recording
from ..threads import started_pool
from .screen import QueryReply, Screen, ScreenHistory, ScreenView
from .screen_emulation import ScreenEmulation
from .screen_guard import ScreenGuard

T = TypeVar("T")
RunKey = tuple[str, int]  # worker, run

THREADS = 2
REPLAY_BYTES = 64 << 10  # shown of a run whose screen must not be emulated
MAX_LOADED = 32  # screens in memory; each takes up to a few MiB


class ScreenSlot:
    """One screen with the lock that a task needs to use it."""

    def __init__(self, screen: Screen) -> None:
        self.screen = screen
        self.is_running = False  # its program runs, and the number of its last reply is known here
        self.users = 0  # tasks that use the screen or wait for it
        self.lock = asyncio.Lock()

    @property
    def is_needed(self) -> bool:
        """Whether the slot holds more than the saved file of the screen."""
        return self.is_running or self.users > 0 or self.screen.loaded

    async def acquire(self) -> None:
        """Wait for the lock of the screen; `release` frees it."""
        self.users += 1
        try:
            await self.lock.acquire()
        except asyncio.CancelledError:
            self.users -= 1
            raise

    def release(self, done: "asyncio.Future[Any]") -> None:
        """Free the lock when the work of a thread is done, also if no task awaits its result any more."""
        self.users -= 1
        self.lock.release()
        done.cancelled() or done.exception()


class Screens:
    """The screens of all running terminals, and those that were used recently."""

    def __init__(self, directory: Path, guard: ScreenGuard) -> None:
        self._directory = directory
        self._guard = guard
        self._threads = started_pool(THREADS, "bullpen-screen")
        self._slots: OrderedDict[RunKey, ScreenSlot] = OrderedDict()

    @classmethod
    @asynccontextmanager
    async def open(cls, directory: Path) -> AsyncIterator["Screens"]:
        """Open the screens of a data directory; they are saved when the block ends."""
        with ScreenGuard.open(directory) as guard:
            screens = cls(directory, guard)
            try:
                yield screens
            finally:
                await asyncio.gather(*(screens._use(slot, Screen.unload) for slot in screens._slots.values()))
                screens._threads.shutdown()

    async def warm_up(self) -> None:
        """Load the emulator and use it once, so that the first terminal need not wait for it."""
        await asyncio.get_running_loop().run_in_executor(self._threads, use_emulator_once)

    def start_run(self, worker: Worker, recording: Recording, answered: int) -> int:
        """Register a running program that was given `answered` replies; return the offset to scan from."""
        slot = self._slot(worker, recording, answered)
        slot.is_running = True
        return min(slot.screen.position.offset, recording.end)

    def end_run(self, worker: Worker) -> None:
        """Note that the program has ended: its screen may be dropped when it is not in use."""
        if slot := self._slots.get((worker.id, worker.run)):
            slot.is_running = False
            self._drop_unneeded()

    async def advance(
        self, worker: Worker, recording: Recording, to: int, answer_from: int
    ) -> list[QueryReply]:
        """Feed the screen up to an offset, and return its replies to the queries of the program.

        Replies to queries before `answer_from` are returned without bytes.
        """
        if not self._guard.allows(worker.id):
            return []
        slot = self._slot(worker, recording)
        return await self._use(slot, lambda screen: screen.advance(to, answer_from))

    async def history(self, worker: Worker, recording: Recording) -> ScreenHistory:
        """Return the bytes that make the empty terminal of a new viewer show the current screen."""
        if not self._guard.allows(worker.id):
            return _plain_replay(worker, recording)
        slot = self._slot(worker, recording)
        return await self._use(slot, lambda screen: screen.history(recording.end))

    async def view(self, worker: Worker, recording: Recording) -> ScreenView:
        """Return the current screen as text; it is empty if the emulator crashed on it before."""
        if not self._guard.allows(worker.id):
            return ScreenView("", bracketed_paste=False)
        slot = self._slot(worker, recording)
        return await self._use(slot, lambda screen: screen.view(recording.end))

    async def forget(self, worker_id: str) -> None:
        """Remove the saved screens of a purged worker."""
        for key in [key for key in self._slots if key[0] == worker_id]:
            async with self._slots.pop(key).lock:
                pass  # wait for a thread that would save it again
        await asyncio.to_thread(shutil.rmtree, self._directory / worker_id, ignore_errors=True)

    def _slot(self, worker: Worker, recording: Recording, answered: int = 0) -> ScreenSlot:
        """Return the slot of a run, made if there is none."""
        key = (worker.id, worker.run)
        if key not in self._slots:
            directory = self._directory / worker.id / str(worker.run)
            guard = self._guard.guarding(worker.id)
            screen = Screen(recording, directory, worker.cols, worker.rows, answered=answered, guard=guard)
            self._slots[key] = ScreenSlot(screen)
        self._slots.move_to_end(key)
        return self._slots[key]

    async def _use(self, slot: ScreenSlot, work: Callable[[Screen], T]) -> T:
        """Wait for a screen, use it in a thread, and unload others if too many are loaded."""
        await slot.acquire()
        result = await self._in_thread(slot, work)
        await self._unload_some()
        return result

    async def _in_thread(self, slot: ScreenSlot, work: Callable[[Screen], T]) -> T:
        """Do the work in a thread, and release the screen after it even if the caller is cancelled."""
        working = asyncio.get_running_loop().run_in_executor(self._threads, work, slot.screen)
        working.add_done_callback(slot.release)
        return await asyncio.shield(working)

    async def _unload_some(self) -> None:
        """Unload the least recently used screens if there are too many in memory."""
        loaded = [slot for slot in self._slots.values() if slot.screen.loaded]
        for slot in loaded[: max(0, len(loaded) - MAX_LOADED)]:
            if not slot.users:
                await slot.acquire()
                await self._in_thread(slot, Screen.unload)
        self._drop_unneeded()

    def _drop_unneeded(self) -> None:
        """Drop the slots of screens that are saved and not in use."""
        for key in [key for key, slot in self._slots.items() if not slot.is_needed]:
            del self._slots[key]


def _plain_replay(worker: Worker, recording: Recording) -> ScreenHistory:
    """Return the last bytes of the recording itself, for a run on which the emulator has crashed."""
    start = max(recording.start, recording.end - REPLAY_BYTES)
    data = recording.read(start, REPLAY_BYTES)
    return ScreenHistory(start + len(data), worker.cols, worker.rows, data)


@cache
def use_emulator_once() -> None:
    """Use an emulator once, so that the library is loaded before the first viewer waits for it."""
    emulation = ScreenEmulation.blank(cols=80, rows=24)
    emulation.feed(b"$ ", 2)
    emulation.history()
