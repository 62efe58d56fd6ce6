"""Decide when to acknowledge input: after a short delay, many at once, and never before their echo."""

import asyncio
from collections.abc import Callable

DELAY_SECONDS = 0.005


class InputAcks:
    """Tracks input until the keeper has accepted it. The keeper answers after the echo of a key.

    `when_due` is called when an acknowledgement must be sent; `last` is its number.
    """

    def __init__(self, when_due: Callable[[], None]) -> None:
        self.due = False
        self.last = 0  # the highest number that was accepted
        self._when_due = when_due
        self._in_flight = 0
        self._overdue = False  # the delay is over, but input is in flight
        self._timer: asyncio.TimerHandle | None = None

    def note_sent(self) -> None:
        """Note that input was sent to the keeper."""
        self._in_flight += 1

    def note_accepted(self, n: int | None) -> None:
        """Note that the keeper has answered; `n` is None if there is nothing to acknowledge."""
        self._in_flight -= 1
        if n is not None:
            self.last = max(self.last, n)
        if self._overdue:
            self._come_due()
        elif n is not None and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(DELAY_SECONDS, self._on_timer)

    def flush(self) -> None:
        """Acknowledge at once what has been accepted."""
        if self._timer is not None or self._overdue:
            self._come_due()

    def _on_timer(self) -> None:
        """The delay is over: acknowledge now, or after the input in flight."""
        self._overdue = self._in_flight > 0
        if self._overdue:
            self._timer = None
        else:
            self._come_due()

    def _come_due(self) -> None:
        """Mark the acknowledgement as due, and call `when_due`."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer, self._overdue, self.due = None, False, True
        self._when_due()
