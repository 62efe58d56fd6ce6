"""Wait for descriptors and timers with one epoll, and serve each ready descriptor once per iteration.

Flood mode. A descriptor that delivers much output is edge-triggered: epoll reports new output, and the loop
never polls for more. Polling a pty, or reading an empty one, waits for the kernel worker that moves the
output, and that worker waits for the program that prints. While only floods are ready, the keeper runs with
the scheduling policy for batch jobs. While an answer to input is expected, floods are read rarely, and not at
all between a keystroke and its echo; `_MAX_FLOOD_DELAY` prevents their starvation.

Coalescing. When small events arrive at a high rate, the loop sleeps between two iterations, so that one
iteration serves several events. Only timers and urgent descriptors interrupt this sleep.
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
_MAX_EVENTS = 256  # of one iteration
_ANSWER_SECONDS = 0.02  # after input: an answer of the child is expected for so long
_ECHO_SECONDS = 0.0003  # most echoes come within it: to poll again costs less than to sleep and be woken
_FLOOD_INTERVAL = 0.002  # seconds between two reads of a flood, and from input to a read, in that time
_MAX_FLOOD_DELAY = 0.006  # seconds a flood may go unread while input keeps coming
_FLOOD_IDLE_SECONDS = 0.05  # a descriptor without output for so long is no longer a flood
_ALARM_SLACK = 0.002  # seconds that a timer may be late when it interrupts a wait for a flood
_COALESCE_SECONDS = 0.004
_ERROR_PAUSE_SECONDS = 0.05
_CROWDED_INTERVAL = 0.005  # seconds between two events: at a higher rate they are coalesced


class Timer:
    """One scheduled call. A cancelled timer is dropped without waking the loop."""

    __slots__ = ("call",)

    def __init__(self, call: Callable[[], None]) -> None:
        self.call: Callable[[], None] | None = call

    def cancel(self) -> None:
        """Prevent the call; the loop drops the timer when its time comes."""
        self.call = None


class EventLoop:
    """Calls back for ready descriptors and timers; runs until `stop`. Callbacks never block."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._urgent = select.epoll()  # the descriptors that interrupt the coalescing sleep
        self.crowded = False  # events arrive at a high rate
        self.coalesce_seconds = _COALESCE_SECONDS  # the server gets no notice sooner (notices.py)
        self._last_iteration = 0.0  # its time
        self._callbacks: dict[int, Callable[[int], object]] = {}
        self.floods: dict[int, Callable[[], None]] = {}  # each with the callback for its end
        self._idle_floods: set[int] = set()  # floods without output since the last check
        self._idle_check_pending = False
        self._ready_floods: dict[int, int] = {}  # floods with output to read, each with its epoll mask
        self._priority = SchedulingPriority()
        self._placement = CorePlacement()
        self._placement_due = 0.0  # when to check the core again
        self._timers: list[tuple[float, int, Timer]] = []
        self._timer_count = 0  # orders timers that are due at the same time
        self._running = False
        self._answer_until = 0.0  # an answer to input is expected until then
        self._spin_until = 0.0  # epoll is polled without sleeping until then
        self._floods_due = 0.0
        self._floods_read_at = 0.0
        self._alarm = 0.0  # the due time for which SIGALRM is set
        self.after_iteration: Callable[[], None] = lambda: None
        self.signals = SignalPipe()
        self.signals.on(signal.SIGALRM, lambda: None)
        self.watch(self.signals.fd, READABLE, self.signals.read)

    def watch(self, fd: int, mask: int, callback: Callable[[int], object]) -> None:
        """Call `callback` with the epoll mask whenever the descriptor is ready."""
        self._epoll.register(fd, mask)
        self._callbacks[fd] = callback

    def watch_urgently(self, fd: int) -> None:
        """Let input on a watched descriptor interrupt the coalescing sleep, until it is closed."""
        self._urgent.register(fd, READABLE)

    def change_mask(self, fd: int, mask: int) -> None:
        """Change the events for which a watched descriptor is reported."""
        self._epoll.modify(fd, mask)

    def watches(self, fd: int) -> bool:
        """Return whether a descriptor is watched."""
        return fd in self._callbacks

    def unwatch(self, fd: int) -> None:
        """Stop watching a descriptor, if it is watched."""
        if self._callbacks.pop(fd, None) is not None:
            self._forget_flood(fd)
            with suppress(OSError):
                self._epoll.unregister(fd)

    def start_flood(self, fd: int, on_end: Callable[[], None]) -> None:
        """Make a descriptor edge-triggered. `on_end` is called when it is a flood no more.

        Its callback must then read until nothing is left, or call `end_flood`: epoll does not report the
        same output twice.
        """
        self.floods[fd] = on_end
        self._schedule_idle_check()
        self._epoll.modify(fd, READABLE | select.EPOLLET)

    def end_flood(self, fd: int) -> None:
        """Make a descriptor level-triggered again."""
        if fd in self.floods:
            self._epoll.modify(fd, READABLE)
            self._forget_flood(fd)

    def call_later(self, delay: float, callback: Callable[[], None]) -> Timer:
        """Call `callback` once, `delay` seconds from now."""
        self._timer_count += 1
        timer = Timer(callback)
        heapq.heappush(self._timers, (monotonic() + delay, self._timer_count, timer))
        return timer

    def run(self) -> None:
        """Serve descriptors and timers until `stop`."""
        poll, callbacks, floods, timers = self._epoll.poll, self._callbacks, self.floods, self._timers
        self._running = True
        while self._running:
            if self.crowded and not floods and not self.expects_answer:
                self._urgent.poll(min(self.coalesce_seconds, self._until_timer(self.coalesce_seconds)))
            only_floods = bool(floods) and not (self._ready_floods or self.expects_answer)
            if only_floods is not self._priority.is_batch:
                self._priority.change(batch=only_floods)
            events = self._serve_floods() if only_floods else poll(self._poll_timeout(), _MAX_EVENTS)
            now = monotonic()
            self.crowded = len(events) * _CROWDED_INTERVAL > now - self._last_iteration
            self._last_iteration = now
            others = False
            for fd, mask in events:
                if fd in floods:
                    self._ready_floods[fd] = mask
                elif callback := callbacks.get(fd):  # an earlier callback may have closed it
                    others = True
                    try:
                        callback(mask)
                    except Exception:  # noqa: BLE001 (the end of the keeper would end every child)
                        _report_exception()
            if self._ready_floods:
                if others:
                    self.after_iteration()  # before the floods, which would delay it
                self._read_floods()
            if timers and timers[0][0] <= monotonic():
                self._run_due_timers()
            self.after_iteration()

    def stop(self) -> None:
        """End `run` after the current iteration."""
        self._running = False

    @property
    def expects_answer(self) -> bool:
        """Whether a child had input a moment ago."""
        return self._answer_until > monotonic()

    @property
    def until_echo(self) -> float:
        """Seconds for which an echo may still come, so that less urgent work can wait; 0 without one."""
        return self._spin_until - monotonic() if self._spin_until else 0.0

    def expect_answer(self) -> None:
        """Prefer the answer of a child that was just given input to any flood, for a moment."""
        now = monotonic()
        self._answer_until, self._spin_until = now + _ANSWER_SECONDS, now + _ECHO_SECONDS
        self._floods_due = min(now + _FLOOD_INTERVAL, self._floods_read_at + _MAX_FLOOD_DELAY)

    def use_normal_priority(self) -> None:
        """Leave the batch policy until the next iteration: processes started now inherit the policy."""
        self._priority.change(batch=False)

    def skip_coalescing(self) -> None:
        """Do not sleep before the next iteration: a full pipe blocks its writer."""
        self.crowded = False

    def stop_spinning(self) -> None:
        """Let the next poll sleep: the echo has come."""
        self._spin_until = 0.0

    def _read_floods(self) -> None:
        """Call back for the floods that are ready, unless an expected answer delays them."""
        now = monotonic()
        if now < self._floods_due and now < self._answer_until:
            return
        floods = tuple(self._ready_floods.items())
        self._ready_floods.clear()
        for fd, mask in floods:
            self._idle_floods.discard(fd)
            if callback := self._callbacks.get(fd):
                try:
                    callback(mask)
                except Exception:  # noqa: BLE001
                    _report_exception()
        self._floods_read_at = monotonic()
        self._floods_due = self._floods_read_at + _FLOOD_INTERVAL

    def _forget_flood(self, fd: int) -> None:
        """Remove a descriptor from the floods and call the callback for its end."""
        self._idle_floods.discard(fd)
        self._ready_floods.pop(fd, None)
        if on_end := self.floods.pop(fd, None):
            on_end()

    def _schedule_idle_check(self) -> None:
        """Schedule the check that ends the flood state of descriptors without output."""
        if self.floods and not self._idle_check_pending:
            self._idle_check_pending = True
            self.call_later(_FLOOD_IDLE_SECONDS, self._end_idle_floods)

    def _end_idle_floods(self) -> None:
        """End the floods that had no output since the last check."""
        self._idle_check_pending = False
        for fd in tuple(self._idle_floods):
            self.end_flood(fd)
        self._idle_floods.update(self.floods)
        self._schedule_idle_check()

    def _poll_timeout(self) -> float:
        """Return how long epoll may sleep, in seconds; -1 means without a limit."""
        if self._spin_until:
            if self._spin_until > monotonic():
                os.sched_yield()  # to the kernel worker of the pty, which may wait for this core
                return 0
            self.stop_spinning()
        if self._ready_floods:
            return max(0.0, min(self._floods_due, self._answer_until) - monotonic())
        return self._until_timer(-1)

    def _serve_floods(self) -> list[tuple[int, int]]:
        """Read floods only, until another descriptor is ready or a timer is due; return the events then."""
        poll, floods, callbacks, idle = self._epoll.poll, self.floods, self._callbacks, self._idle_floods
        while floods and (due := self._timers[0][0]) > (now := monotonic()):
            if now > self._placement_due:
                self._placement_due = now + self._placement.check(next(iter(floods)), now)
            if due != self._alarm:
                self._set_alarm(due)
            events = poll(-1, _MAX_EVENTS)
            for fd, _ in events:
                if fd not in floods:
                    return events
            for fd, mask in events:
                idle.discard(fd)
                if callback := callbacks.get(fd):
                    try:
                        callback(mask)
                    except Exception:  # noqa: BLE001
                        _report_exception()
            self.after_iteration()
        return []

    def _set_alarm(self, due: float) -> None:
        """Let SIGALRM interrupt the poll: a timeout for each page of a flood costs as much as its read."""
        self._alarm = due
        set_alarm(max(0.0, due - monotonic()) + _ALARM_SLACK)

    def _until_timer(self, default: float) -> float:
        """Return the seconds until the next timer is due, or `default` if there is none."""
        timers = self._timers
        while timers and timers[0][2].call is None:
            heapq.heappop(timers)
        return max(0.0, timers[0][0] - monotonic()) if timers else default

    def _run_due_timers(self) -> None:
        """Call the timers whose time has come; report an exception and go on."""
        now = monotonic()
        while self._timers and self._timers[0][0] <= now:
            if call := heapq.heappop(self._timers)[2].call:
                try:
                    call()
                except Exception:  # noqa: BLE001
                    _report_exception()


def _report_exception() -> None:
    """Print the exception of a callback to the keeper's log. Pause, since the same event may come again."""
    sys.excepthook(*sys.exc_info())
    sleep(_ERROR_PAUSE_SECONDS)
