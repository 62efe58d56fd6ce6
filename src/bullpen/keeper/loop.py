"""The loop: one epoll and a few timers; each turn serves every ready descriptor once and runs `after_turn`.

A descriptor in a flood is *hot*: epoll tells of it when something comes, and is not asked whether there is
more. To ask a pty, or to read an empty one, waits for the kernel's worker, which waits for the program that
prints. Meanwhile we let those who run go on. While somebody waits for an answer, floods are read rarely, and
not between a key and its echo.

Where little is said often, by one or by a crowd, one turn soon follows the other: then the loop naps, so that
a turn serves several words, and only those it *heeds* wake it, or a timer.
"""

from __future__ import annotations

import heapq
import os
import select
import signal
import sys
from contextlib import suppress
from time import monotonic, sleep

from .core_placement import CorePlacement
from .priority import SchedulingPriority
from .signals import SignalPipe, set_alarm

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

READABLE = select.EPOLLIN
WRITABLE = select.EPOLLOUT
_EVENTS_A_TURN = 256
_ANSWER = 0.02  # seconds in which an answer is awaited
_ECHO = 0.0003  # seconds in which most come: to look again costs less than to fall asleep and be woken
_PAUSE = 0.002  # seconds from one read of a flood to the next then, and from a key to the next read
_STARVED = 0.006  # seconds without a read of it, however many keys come
_QUIET = 0.05  # seconds or more without a word: it is none any more
_LATE = 0.002  # seconds that a timer may be late when a flood stops before it
_NAP = 0.004  # seconds
_PAUSE_AFTER_MISTAKE = 0.05  # seconds
_CROWDED = 0.005  # seconds or less from one event to the next


class Timer:
    """A call that comes later; one that was cancelled wakes nobody."""

    __slots__ = ("call",)

    def __init__(self, call: Callable[[], None]) -> None:
        self.call: Callable[[], None] | None = call

    def cancel(self) -> None:
        self.call = None


class EventLoop:
    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._heeded = select.epoll()
        self.crowded = False
        self.nap = _NAP  # seconds: nobody would be told sooner (notices.py)
        self._last_turn = 0.0
        self._callbacks: dict[int, Callable[[int], object]] = {}
        self.hot: dict[int, Callable[[], None]] = {}  # each with what is called when it is none any more
        self._quiet: set[int] = set()  # the hot ones that have said nothing of late
        self._cooling = False  # a timer runs
        self._floods: dict[int, int] = {}  # the hot ones that have something to read: what epoll told of them
        self._priority = SchedulingPriority()
        self._place = CorePlacement()
        self._look_due = 0.0  # whether it is a good one
        self._timers: list[tuple[float, int, Timer]] = []
        self._order = 0
        self._running = False
        self._awaited_until = 0.0
        self._awake_until = 0.0
        self._floods_due = 0.0
        self._floods_read = 0.0  # when
        self._alarm = 0.0  # the timer for which it is set
        self.after_turn: Callable[[], None] = lambda: None
        self.signals = SignalPipe()
        self.signals.on(signal.SIGALRM, lambda: None)
        self.watch(self.signals.fd, READABLE, self.signals.read)

    def watch(self, fd: int, mask: int, callback: Callable[[int], object]) -> None:
        self._epoll.register(fd, mask)
        self._callbacks[fd] = callback

    def heed(self, fd: int) -> None:
        """Not even a nap makes it wait; closing it ends that."""
        self._heeded.register(fd, READABLE)

    def change(self, fd: int, mask: int) -> None:
        self._epoll.modify(fd, mask)

    def watches(self, fd: int) -> bool:
        return fd in self._callbacks

    def unwatch(self, fd: int) -> None:
        if self._callbacks.pop(fd, None) is not None:
            self._forget_flood(fd)
            with suppress(OSError):
                self._epoll.unregister(fd)

    def heat(self, fd: int, on_cool: Callable[[], None]) -> None:
        """Whenever it is told of it has to be read to its end, or be cooled: what is left is not told of."""
        self.hot[fd] = on_cool
        self._cool_later()
        self._epoll.modify(fd, READABLE | select.EPOLLET)

    def cool(self, fd: int) -> None:
        if fd in self.hot:
            self._epoll.modify(fd, READABLE)
            self._forget_flood(fd)

    def later(self, delay: float, callback: Callable[[], None]) -> Timer:
        self._order += 1
        timer = Timer(callback)
        heapq.heappush(self._timers, (monotonic() + delay, self._order, timer))
        return timer

    def run(self) -> None:
        poll, callbacks, hot, timers = self._epoll.poll, self._callbacks, self.hot, self._timers
        self._running = True
        while self._running:
            if self.crowded and not hot and not self.awaited:
                self._heeded.poll(min(self.nap, self._until_timer(self.nap)))
            flows = bool(hot) and not (self._floods or self.awaited)
            if flows is not self._priority.patient:
                self._priority.change(patient=flows)
            events = self._flow() if flows else poll(self._patience(), _EVENTS_A_TURN)
            now = monotonic()
            self.crowded = len(events) * _CROWDED > now - self._last_turn
            self._last_turn = now
            others = False
            for fd, mask in events:
                if fd in hot:
                    self._floods[fd] = mask
                elif callback := callbacks.get(fd):  # an earlier one in this turn may have closed it
                    others = True
                    try:
                        callback(mask)
                    except Exception:  # noqa: BLE001 (our death would end every child)
                        _report_mistake()
            if self._floods:
                if others:
                    self.after_turn()  # not held up by a flood
                self._read_floods()
            if timers and timers[0][0] <= monotonic():
                self._run_due()
            self.after_turn()

    def stop(self) -> None:
        self._running = False

    @property
    def awaited(self) -> bool:
        return self._awaited_until > monotonic()

    @property
    def until_echo(self) -> float:
        """Seconds in which an echo may yet come: what nobody waits for can wait so long."""
        return self._awake_until - monotonic() if self._awake_until else 0.0

    def await_answer(self) -> None:
        """Somebody has said something, and what comes back is worth more than a flood."""
        now = monotonic()
        self._awaited_until, self._awake_until = now + _ANSWER, now + _ECHO
        self._floods_due = min(now + _PAUSE, self._floods_read + _STARVED)

    def hurry(self) -> None:
        """For the rest of this turn we run as everybody does, and whom we start will."""
        self._priority.change(patient=False)

    def stay_awake(self) -> None:
        """No nap after this turn: somebody has so much to say that he waits for us."""
        self.crowded = False

    def rest(self) -> None:
        """The answer has come."""
        self._awake_until = 0.0

    def _read_floods(self) -> None:
        now = monotonic()
        if now < self._floods_due and now < self._awaited_until:
            return
        floods = tuple(self._floods.items())
        self._floods.clear()
        for fd, mask in floods:
            self._quiet.discard(fd)
            if callback := self._callbacks.get(fd):
                try:
                    callback(mask)
                except Exception:  # noqa: BLE001
                    _report_mistake()
        self._floods_read = monotonic()
        self._floods_due = self._floods_read + _PAUSE

    def _forget_flood(self, fd: int) -> None:
        self._quiet.discard(fd)
        self._floods.pop(fd, None)
        if on_cool := self.hot.pop(fd, None):
            on_cool()

    def _cool_later(self) -> None:
        if self.hot and not self._cooling:
            self._cooling = True
            self.later(_QUIET, self._cool_quiet)

    def _cool_quiet(self) -> None:
        self._cooling = False
        for fd in tuple(self._quiet):
            self.cool(fd)
        self._quiet.update(self.hot)
        self._cool_later()

    def _patience(self) -> float:
        if self._awake_until:
            if self._awake_until > monotonic():
                os.sched_yield()  # to the kernel's worker, which may wait for this very core
                return 0
            self.rest()
        if self._floods:
            return max(0.0, min(self._floods_due, self._awaited_until) - monotonic())
        return self._until_timer(-1)

    def _flow(self) -> list[tuple[int, int]]:
        """Reads floods and nothing else, until something else happens, which is left to the turn."""
        poll, hot, callbacks, quiet = self._epoll.poll, self.hot, self._callbacks, self._quiet
        while hot and (due := self._timers[0][0]) > (now := monotonic()):
            if now > self._look_due:
                self._look_due = now + self._place.look(next(iter(hot)), now)
            if due != self._alarm:
                self._set_alarm(due)
            events = poll(-1, _EVENTS_A_TURN)
            for fd, _ in events:
                if fd not in hot:
                    return events
            for fd, mask in events:
                quiet.discard(fd)
                if callback := callbacks.get(fd):
                    try:
                        callback(mask)
                    except Exception:  # noqa: BLE001
                        _report_mistake()
            self.after_turn()
        return []

    def _set_alarm(self, due: float) -> None:
        """Ends a wait for what may not come: a timeout for each page of a flood costs as much as its read."""
        self._alarm = due
        set_alarm(max(0.0, due - monotonic()) + _LATE)

    def _until_timer(self, without: float) -> float:
        timers = self._timers
        while timers and timers[0][2].call is None:
            heapq.heappop(timers)
        return max(0.0, timers[0][0] - monotonic()) if timers else without

    def _run_due(self) -> None:
        now = monotonic()
        while self._timers and self._timers[0][0] <= now:
            if call := heapq.heappop(self._timers)[2].call:
                try:
                    call()
                except Exception:  # noqa: BLE001
                    _report_mistake()


def _report_mistake() -> None:
    """Print the exception of a callback to the keeper's log. Pause, since the same event may come again."""
    sys.excepthook(*sys.exc_info())
    sleep(_PAUSE_AFTER_MISTAKE)
