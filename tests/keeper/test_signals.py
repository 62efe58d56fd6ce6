"""Signal handlers are called by the event loop, in an iteration."""

import os
import signal
from collections.abc import Iterator

import pytest

from bullpen.keeper.loop import READABLE, EventLoop
from bullpen.keeper.signals import set_alarm


@pytest.fixture(autouse=True)
def restore_signal_handlers() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in (signal.SIGALRM, signal.SIGUSR1)}
    yield
    signal.set_wakeup_fd(-1)
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))  # a flood changes it for all later tests
    for number, handler in before.items():
        signal.signal(number, handler)


def test_a_signal_handler_is_called_in_an_iteration() -> None:
    loop = EventLoop()
    loop.signals.on(signal.SIGUSR1, loop.stop)
    os.kill(os.getpid(), signal.SIGUSR1)
    loop.run()


def test_an_alarm_wakes_a_loop_whose_flood_has_stopped() -> None:
    loop = EventLoop()
    silent, _ = os.pipe()
    loop.watch(silent, READABLE, lambda _mask: None)
    loop.start_flood(silent, lambda: None)
    loop.call_later(0.01, loop.stop)
    loop.run()


def test_an_unexpected_alarm_does_nothing() -> None:
    loop = EventLoop()
    set_alarm(0.001)
    loop.call_later(0.05, loop.stop)
    loop.run()
