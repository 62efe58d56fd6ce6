"""The screens in memory: made on first need, each used by one thread at a time, saved when they go.

Feeding and formatting one Ghostty terminal at once crashes it, so every screen has a lane of its own; the
lanes share a few threads. A screen is only a cache of the recording: it can always be made again.
"""

import asyncio
import shutil
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

from ..domain.snapshot import Worker
from ..log.recording import Recording
from ..threads import started_pool
from .screen import QueryReply, Screen, ScreenHistory, ScreenView
from .screen_emulation import ScreenEmulation
from .screen_guard import ScreenGuard

T = TypeVar("T")
Key = tuple[str, int]

THREADS = 2
REPLAYED = 64 << 10
KEPT = 32  # screens in memory; one takes up to some MiB


class ScreenSlot:
    """One screen and the right to use it."""

    def __init__(self, screen: Screen) -> None:
        self.screen = screen
        self.living = False  # its program runs: what it was answered is known here
        self.users = 0  # who uses it or waits for it
        self.lock = asyncio.Lock()

    @property
    def needed(self) -> bool:
        """Whether there is more to it than its file."""
        return self.living or self.users > 0 or self.screen.loaded

    async def enter(self) -> None:
        """Waits for the right to use it, which ends with `left`."""
        self.users += 1
        try:
            await self.lock.acquire()
        except asyncio.CancelledError:
            self.users -= 1
            raise

    def left(self, done: "asyncio.Future[Any]") -> None:
        """A thread is done with the screen, whether or not anybody still waits for what it found."""
        self.users -= 1
        self.lock.release()
        done.cancelled() or done.exception()


class Screens:
    """Every screen somebody needed lately."""

    def __init__(self, directory: Path, guard: ScreenGuard) -> None:
        self._directory = directory
        self._guard = guard
        self._threads = started_pool(THREADS, "bullpen-screen")
        self._lanes: OrderedDict[Key, ScreenSlot] = OrderedDict()

    @classmethod
    @asynccontextmanager
    async def open(cls, directory: Path) -> AsyncIterator["Screens"]:
        """Screens that are saved when the block is left."""
        with ScreenGuard.open(directory) as guard:
            screens = cls(directory, guard)
            try:
                yield screens
            finally:
                await asyncio.gather(*(screens._use(lane, Screen.rest) for lane in screens._lanes.values()))
                screens._threads.shutdown()

    async def warm_up(self) -> None:
        """Load the emulator, and use it once, so that the first terminal need not wait for that."""
        await asyncio.get_running_loop().run_in_executor(self._threads, _use_once)

    def begin(self, worker: Worker, recording: Recording, answered: int) -> int:
        """Knows a run whose program was given `answered` replies; where to look for questions from."""
        lane = self._lane(worker, recording, answered)
        lane.living = True
        return min(lane.screen.place.offset, recording.end)

    def end(self, worker: Worker) -> None:
        """The run is over: its screen is kept only as long as somebody looks at it."""
        if lane := self._lanes.get((worker.id, worker.run)):
            lane.living = False
            self._drop_unneeded()

    async def advance(
        self, worker: Worker, recording: Recording, to: int, answer_from: int
    ) -> list[QueryReply]:
        """Feeds the screen up to an offset and returns what it has to say to the program."""
        if not self._guard.allows(worker.id):
            return []
        lane = self._lane(worker, recording)
        return await self._use(lane, lambda screen: screen.advance(to, answer_from))

    async def history(self, worker: Worker, recording: Recording) -> ScreenHistory:
        """The screen as it is now, as bytes for a newcomer's terminal."""

        if not self._guard.allows(worker.id):
            return _plain_replay(worker, recording)

        lane = self._lane(worker, recording)
        return await self._use(lane, lambda screen: screen.history(recording.end))

    async def seen(self, worker: Worker, recording: Recording) -> ScreenView:
        """The screen as it is now, as a person sees it; nothing of one the emulator does not survive."""
        if not self._guard.allows(worker.id):
            return ScreenView("", pastes=False)
        lane = self._lane(worker, recording)
        return await self._use(lane, lambda screen: screen.seen(recording.end))

    async def forget(self, worker_id: str) -> None:
        """Removes the saved screens of a purged worker."""
        for key in [key for key in self._lanes if key[0] == worker_id]:
            async with self._lanes.pop(key).lock:
                pass  # a thread that is not done would save it again
        await asyncio.to_thread(shutil.rmtree, self._directory / worker_id, ignore_errors=True)

    def _lane(self, worker: Worker, recording: Recording, answered: int = 0) -> ScreenSlot:
        key = (worker.id, worker.run)
        if key not in self._lanes:
            place = self._directory / worker.id / str(worker.run)
            watch = self._guard.watching(worker.id)
            screen = Screen(recording, place, worker.cols, worker.rows, answered=answered, watch=watch)
            self._lanes[key] = ScreenSlot(screen)
        self._lanes.move_to_end(key)
        return self._lanes[key]

    async def _use(self, lane: ScreenSlot, work: Callable[[Screen], T]) -> T:
        await lane.enter()
        result = await self._in_thread(lane, work)
        await self._rest_some()
        return result

    async def _in_thread(self, lane: ScreenSlot, work: Callable[[Screen], T]) -> T:
        """The lane is free when the thread has left the screen; a caller that is cancelled goes at once."""
        working = asyncio.get_running_loop().run_in_executor(self._threads, work, lane.screen)
        working.add_done_callback(lane.left)
        return await asyncio.shield(working)

    async def _rest_some(self) -> None:
        """Gives back the memory of the screens that were not needed for longest."""
        loaded = [lane for lane in self._lanes.values() if lane.screen.loaded]
        for lane in loaded[: max(0, len(loaded) - KEPT)]:
            if not lane.users:
                await lane.enter()
                await self._in_thread(lane, Screen.rest)
        self._drop_unneeded()

    def _drop_unneeded(self) -> None:
        for key in [key for key, lane in self._lanes.items() if not lane.needed]:
            del self._lanes[key]


def _plain_replay(worker: Worker, recording: Recording) -> ScreenHistory:
    """The last bytes as they were said, for a run whose bytes the emulator does not survive."""
    start = max(recording.start, recording.end - REPLAYED)
    data = recording.read(start, REPLAYED)
    return ScreenHistory(start + len(data), worker.cols, worker.rows, data)


def _use_once() -> None:
    emulation = ScreenEmulation.blank(cols=80, rows=24)
    emulation.feed(b"$ ", 2)
    emulation.history()
