"""Follow a log: a reader pulls batches of events, from memory if it is near the end, else from the database.

A follower has no queue, so a slow one delays only itself. Followers at the same number share one batch. A
follower with a callback gets a batch directly, without waking its task.
"""

import asyncio
from collections.abc import Callable, Sized
from typing import Protocol, Self

from msgspec import Struct

MIN_BATCH_INTERVAL = 0.003  # seconds between two batches while events keep coming
INTERVAL_PER_FOLLOWER = 30e-6  # seconds added for each follower: the time it takes to notify one


class EventBatch(Struct, frozen=True, eq=False, weakref=True):
    """Consecutive events in JSON. Many followers may share one batch."""

    first: int
    last: int
    encoded: list[bytes]
    head: int  # the newest event of the log at that time


Take = Callable[[EventBatch], bool]  # handles a batch at once; returns False if it cannot


class GrowthSignal:
    """The number of the newest event, and a way to wait for a newer one.

    A task that reads `head` and then waits, without an await in between, misses nothing.
    """

    def __init__(self, head: int) -> None:
        self.head = head
        self._event = asyncio.Event()
        self._listeners: dict[asyncio.Future[None], Callable[[], bool]] = {}

    async def wait(self) -> None:
        """Wait until a newer event is announced."""
        await self._event.wait()

    async def wait_unless(self, handle: Callable[[], bool]) -> None:
        """Call `handle` whenever a newer event is announced; return once it returns False.

        Raise what `handle` raises.
        """
        woken = asyncio.get_running_loop().create_future()
        self._listeners[woken] = handle
        try:
            await woken
        finally:
            del self._listeners[woken]

    def announce(self, head: int) -> None:
        """Set the number of the newest event and wake all waiters."""
        self.head = head
        event, self._event = self._event, asyncio.Event()
        event.set()
        for woken, handle in self._listeners.items():
            # A waiter whose future is done was cancelled or woken before; it reads `head` itself.
            if woken.done():
                continue
            try:
                if not handle():
                    woken.set_result(None)
            except Exception as error:  # noqa: BLE001 (raised in the task that waits; the other waiters are still called)
                woken.set_exception(error)


class PacedGrowthSignal(GrowthSignal):
    """Announces the first event after a silence at once and later ones at a limited rate.

    One timer and one batch then serve all followers.
    """

    def __init__(self, head: int, followers: Sized = ()) -> None:
        super().__init__(head)
        self._followers = followers
        self._loop = asyncio.get_running_loop()
        self._quiet_until = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._pending_head = head

    def announce(self, head: int) -> None:
        """Set the number of the newest event; wake the waiters now, or at the end of the interval."""
        self._pending_head = head
        if self._timer is None:
            now = self._loop.time()
            if now >= self._quiet_until:
                self._announce_pending()
            else:
                self._timer = self._loop.call_at(self._quiet_until, self._announce_pending)

    def _announce_pending(self) -> None:
        """Wake the waiters, and begin the next interval."""
        self._timer = None
        interval = MIN_BATCH_INTERVAL + INTERVAL_PER_FOLLOWER * len(self._followers)
        self._quiet_until = self._loop.time() + interval
        super().announce(self._pending_head)


class EventSource(Protocol):
    """What a follower reads from: a log."""

    growth: GrowthSignal
    paced_growth: GrowthSignal
    closed: bool

    async def read(self, after: int, until: int) -> EventBatch:
        """Return some events with after < seq <= until."""

    def recent_batch(self, after: int, until: int) -> EventBatch | None:
        """Return some events with after < seq <= until from memory; None if they are no longer there."""


class LogFollower:
    """A reader's position in a log. Iterate over it to get batch after batch until the log is closed."""

    def __init__(self, source: EventSource, after: int, growth: GrowthSignal) -> None:
        self.source = source
        self.after = after
        self._growth = growth
        self._take: Take | None = None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> EventBatch:
        while self.after >= self._growth.head and not self.source.closed:
            await (self._growth.wait_unless(self._pass_on) if self._take else self._growth.wait())
        if self.source.closed:
            raise StopAsyncIteration
        batch = await self.source.read(self.after, self._growth.head)
        self.after = batch.last
        return batch

    def enable_pacing(self, take: Take | None = None) -> None:
        """Make the iteration yield the first batch after a silence at once, and later ones at a limited rate.

        Once all earlier events are read, each new batch is passed to `take`. The iteration yields only a
        batch for which `take` returns False.
        """
        self._growth = self.source.paced_growth
        self._take = take

    def _pass_on(self) -> bool:
        """Pass new events to `take`. Return False if the iteration must yield events or end."""
        if self.source.closed or self._take is None:
            return False
        if self.after < self._growth.head:
            batch = self.source.recent_batch(self.after, self._growth.head)
            if batch is None or not self._take(batch):
                return False
            self.after = batch.last
        return self.after >= self._growth.head


def paced(follower: LogFollower, take: Take | None = None) -> LogFollower:
    """Enable pacing on a follower of a log and return it."""
    follower.enable_pacing(take)
    return follower
