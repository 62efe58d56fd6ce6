"""Following a log: a cursor that pulls, from memory when it is near the end, else from the database.

A follower has no queue, so a slow one slows only itself. All who stand at the same number share one batch.
Who has a way to pass a batch on at once is not woken for it.
"""

import asyncio
from collections.abc import Callable, Sized
from typing import Protocol, Self

from msgspec import Struct

PACE = 0.003  # seconds between two batches of a flood
EACH = 30e-6  # more for each follower: what it takes to tell them all


class EventBatch(Struct, frozen=True, eq=False, weakref=True):
    """Events in order without gaps, each as it goes over the wire; many followers may share one."""

    first: int
    last: int
    encoded: list[bytes]
    head: int  # the newest there was


Take = Callable[[EventBatch], bool]  # takes a batch at once, or says that it cannot


class GrowthSignal:
    """Says how far there is something to read, and wakes everyone who waits for more.

    Whoever looks at `head` and then waits, without an await between, misses nothing.
    """

    def __init__(self, head: int) -> None:
        self.head = head
        self._event = asyncio.Event()
        self._listeners: dict[asyncio.Future[None], Callable[[], bool]] = {}

    async def wait(self) -> None:
        await self._event.wait()

    async def wait_unless(self, content: Callable[[], bool]) -> None:
        """Call `content` at every ring and wait until it returns False, or raise what it raises."""
        woken = asyncio.get_running_loop().create_future()
        self._listeners[woken] = content
        try:
            await woken
        finally:
            del self._listeners[woken]

    def ring(self, head: int) -> None:
        self.head = head
        event, self._event = self._event, asyncio.Event()
        event.set()
        for woken, content in self._listeners.items():
            # One that is done was cancelled, or woken before: it will look itself.
            if woken.done():
                continue
            try:
                if not content():
                    woken.set_result(None)
            except Exception as error:  # noqa: BLE001 (raised where the listener waits; the others are called)
                woken.set_exception(error)


class PacedGrowthSignal(GrowthSignal):
    """Rings at once after a silence, then only so often: one timer, and one batch, for all who wait."""

    def __init__(self, head: int, followers: Sized = ()) -> None:
        super().__init__(head)
        self._followers = followers
        self._loop = asyncio.get_running_loop()
        self._quiet_until = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._news = head

    def ring(self, head: int) -> None:
        self._news = head
        if self._timer is None:
            now = self._loop.time()
            if now >= self._quiet_until:
                self._fire()
            else:
                self._timer = self._loop.call_at(self._quiet_until, self._fire)

    def _fire(self) -> None:
        self._timer = None
        self._quiet_until = self._loop.time() + PACE + EACH * len(self._followers)
        super().ring(self._news)


class EventSource(Protocol):
    """What a follower reads from."""

    news: GrowthSignal
    paced_news: GrowthSignal
    closed: bool

    async def read(self, after: int, until: int) -> EventBatch: ...
    def recent(self, after: int, until: int) -> EventBatch | None: ...


class LogFollower:
    """One reader's place in a log: iterate to get batch after batch, until the log is closed."""

    def __init__(self, source: EventSource, after: int, bell: GrowthSignal) -> None:
        self.source = source
        self.after = after
        self._bell = bell
        self._take: Take | None = None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> EventBatch:
        while self.after >= self._bell.head and not self.source.closed:
            await (self._bell.wait_unless(self._pass_on) if self._take else self._bell.wait())
        if self.source.closed:
            raise StopAsyncIteration
        batch = await self.source.read(self.after, self._bell.head)
        self.after = batch.last
        return batch

    def pace(self, take: Take | None = None) -> None:
        """From now on the first batch after a silence comes at once, the next ones only so often.

        While nothing is left to read, `take` is offered what comes; only what it does not want is given out.
        """
        self._bell = self.source.paced_news
        self._take = take

    def _pass_on(self) -> bool:
        """Whether nothing is left to read: it was taken, or the bell is behind who began later."""
        if self.source.closed or self._take is None:
            return False
        if self.after < self._bell.head:
            batch = self.source.recent(self.after, self._bell.head)
            if batch is None or not self._take(batch):
                return False
            self.after = batch.last
        return self.after >= self._bell.head


def paced(follower: LogFollower, take: Take | None = None) -> LogFollower:
    follower.pace(take)
    return follower
