"""When a viewer is told that its keys were taken: a moment late and many as one, never before their echo."""

import asyncio
from collections.abc import Callable

AFTER = 0.005  # seconds


class InputAcks:
    """Says when. The keeper answers a key behind its echo: until then the key is on its way."""

    def __init__(self, when_due: Callable[[], None]) -> None:
        self.due = False
        self.last = 0  # number that was taken
        self._when_due = when_due
        self._on_their_way = 0
        self._overdue = False  # and waits for those on their way
        self._timer: asyncio.TimerHandle | None = None

    def sent(self) -> None:
        self._on_their_way += 1

    def taken(self, n: int | None) -> None:
        """One has arrived; None: there is nothing to acknowledge."""
        self._on_their_way -= 1
        if n is not None:
            self.last = max(self.last, n)
        if self._overdue:
            self._come_due()
        elif n is not None and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(AFTER, self._ring)

    def hurry(self) -> None:
        if self._timer is not None or self._overdue:
            self._come_due()

    def _ring(self) -> None:
        self._overdue = self._on_their_way > 0
        if self._overdue:
            self._timer = None
        else:
            self._come_due()

    def _come_due(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer, self._overdue, self.due = None, False, True
        self._when_due()
