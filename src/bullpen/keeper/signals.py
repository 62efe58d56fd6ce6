"""Signals as events of a loop: each leaves its number in a pipe, whoever wanted it is called from there."""

from __future__ import annotations

import os
import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_NUMBERS = 4096


class SignalPipe:
    """Those of this process: the last one made gets them all."""

    def __init__(self) -> None:
        self.fd, self._end = os.pipe()
        for end in (self.fd, self._end):
            os.set_blocking(end, False)
        self._callbacks: dict[int, Callable[[], None]] = {}
        signal.set_wakeup_fd(self._end, warn_on_full_buffer=False)

    def on(self, number: int, callback: Callable[[], None]) -> None:
        self._callbacks[number] = callback
        signal.signal(number, lambda *_: None)

    def read(self, _mask: int) -> None:
        try:
            numbers = os.read(self.fd, _NUMBERS)
        except OSError:  # they stay in the pipe until the next turn
            return
        for number in set(numbers):
            if callback := self._callbacks.get(number):
                callback()


def set_alarm(seconds: float) -> None:
    """SIGALRM comes then, once; the one that was set before does not."""
    signal.setitimer(signal.ITIMER_REAL, seconds)
