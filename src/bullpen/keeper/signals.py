"""Deliver signals as events of the loop: each signal's number is written to a pipe that the loop watches."""

from __future__ import annotations

import os
import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_MAX_SIGNALS = 4096  # in one read


class SignalPipe:
    """The signals of this process. The last instance gets all of them."""

    def __init__(self) -> None:
        self.fd, self._write_end = os.pipe()
        for end in (self.fd, self._write_end):
            os.set_blocking(end, False)
        self._callbacks: dict[int, Callable[[], None]] = {}
        signal.set_wakeup_fd(self._write_end, warn_on_full_buffer=False)

    def on(self, number: int, callback: Callable[[], None]) -> None:
        """Call `callback` from the loop after this signal has arrived."""
        self._callbacks[number] = callback
        signal.signal(number, lambda *_: None)

    def read(self, _mask: int) -> None:
        """Read the pipe, and call the callback of each signal that has arrived once."""
        try:
            numbers = os.read(self.fd, _MAX_SIGNALS)
        except OSError:  # they stay in the pipe until the next iteration
            return
        for number in set(numbers):
            if callback := self._callbacks.get(number):
                callback()


def set_alarm(seconds: float) -> None:
    """Let SIGALRM arrive once after this time, in place of the alarm that was set before."""
    signal.setitimer(signal.ITIMER_REAL, seconds)
