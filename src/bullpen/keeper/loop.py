"""The loop: one epoll and a few timers; each turn serves every ready descriptor once and runs `after_turn`.

A descriptor in a flood is *hot*: read once a turn without asking epoll first. Polling a pty waits for the
kernel's worker every time, which costs a fifth of the throughput. Meanwhile we let those who run go on. While
somebody waits for an answer, floods wait for whatever else there is to do, and are read in small pieces.

Where little is said often, by one or by a crowd, one turn soon follows the other: then the loop naps, so that
a turn serves several words, and only those it *heeds* wake it, or a timer.
"""

from __future__ import annotations

import heapq
import os
import select
from time import monotonic

from .priority import Priority

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

READABLE = select.EPOLLIN
WRITABLE = select.EPOLLOUT
_EVENTS_A_TURN = 256
_ANSWER = 0.02  # seconds in which an answer is awaited
_ECHO = 0.0003  # seconds in which most come: to look again costs less than to fall asleep and be woken
_PAUSE = 0.001  # seconds that floods then leave to others
_STARVED = 0.002  # seconds until they are read whatever else there is to do
_NAP = 0.004  # seconds
_CROWDED = 0.005  # seconds or less from one event to the next


class Loop:
    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._heeded = select.epoll()
        self.crowded = False
        self.nap = _NAP  # seconds: nobody would be told sooner (notices.py)
        self._last_turn = 0.0
        self._callbacks: dict[int, Callable[[int], object]] = {}
        self.hot: dict[int, Callable[[int], object]] = {}
        self._priority = Priority()
        self._timers: list[tuple[float, int, Callable[[], None]]] = []
        self._order = 0
        self._running = False
        self._awaited_until = 0.0
        self._awake_until = 0.0
        self._floods_due = 0.0
        self.after_turn: Callable[[], None] = lambda: None

    def watch(self, fd: int, mask: int, callback: Callable[[int], object]) -> None:
        self._callbacks[fd] = callback
        self._epoll.register(fd, mask)

    def heed(self, fd: int) -> None:
        """Not even a nap makes it wait; closing it ends that."""
        self._heeded.register(fd, READABLE)

    def change(self, fd: int, mask: int) -> None:
        self._epoll.modify(fd, mask)

    def watches(self, fd: int) -> bool:
        return fd in self._callbacks

    def unwatch(self, fd: int) -> None:
        if self._callbacks.pop(fd, None) is not None:
            self.hot.pop(fd, None)
            self._epoll.unregister(fd)

    def heat(self, fd: int) -> None:
        self.hot[fd] = self._callbacks[fd]
        self._epoll.modify(fd, 0)

    def cool(self, fd: int) -> None:
        if self.hot.pop(fd, None) is not None:
            self._epoll.modify(fd, READABLE)

    def later(self, delay: float, callback: Callable[[], None]) -> None:
        self._order += 1
        heapq.heappush(self._timers, (monotonic() + delay, self._order, callback))

    def run(self) -> None:
        poll, callbacks, hot, timers = self._epoll.poll, self._callbacks, self.hot, self._timers
        self._running = True
        while self._running:
            eager = tuple(hot.items()) if hot else ()  # before the events, so that nobody is read twice
            if self.crowded and not eager and not self.awaited:
                self._heeded.poll(min(self.nap, self._until_timer(self.nap)))
            self._priority.change(patient=bool(eager) and not self.awaited)
            events = poll(self._pause() if eager else self._patience(), _EVENTS_A_TURN)
            self._count(len(events))
            for fd, mask in events:
                callback = callbacks.get(fd)  # an earlier one in this turn may have closed it
                if callback is not None:
                    callback(mask)
            if eager and events:
                self.after_turn()  # not held up by a flood
            if eager and not (events and self.awaited and monotonic() < self._floods_due):
                self._read_floods(eager)
            if timers and timers[0][0] <= monotonic():
                self._run_due()
            self.after_turn()

    def stop(self) -> None:
        self._running = False

    @property
    def awaited(self) -> bool:
        return self._awaited_until > monotonic()

    def await_answer(self) -> None:
        """Somebody has said something, and what comes back is worth more than a flood."""
        now = monotonic()
        self._awaited_until, self._awake_until = now + _ANSWER, now + _ECHO

    def hurry(self) -> None:
        """For the rest of this turn we run as everybody does, and whom we start will."""
        self._priority.change(patient=False)

    def rest(self) -> None:
        """The answer has come."""
        self._awake_until = 0.0

    def _count(self, events: int) -> None:
        now = monotonic()
        self.crowded = events * _CROWDED > now - self._last_turn
        self._last_turn = now

    def _read_floods(self, eager: tuple[tuple[int, Callable[[int], object]], ...]) -> None:
        for fd, callback in eager:
            if fd in self.hot:
                callback(READABLE)
        self._floods_due = monotonic() + _STARVED

    def _pause(self) -> float:
        return _PAUSE if self.awaited else 0

    def _patience(self) -> float:
        if self._awake_until:
            if self._awake_until > monotonic():
                os.sched_yield()  # to the kernel's worker, which may wait for this very core
                return 0
            self.rest()
        return self._until_timer(-1)

    def _until_timer(self, without: float) -> float:
        return max(0.0, self._timers[0][0] - monotonic()) if self._timers else without

    def _run_due(self) -> None:
        now = monotonic()
        while self._timers and self._timers[0][0] <= now:
            heapq.heappop(self._timers)[2]()
