"""What catches up behind the house gives way: it rests while somebody asks and waits while somebody types."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from .. import clock

MOMENT = 0.25  # seconds: who asked this lately may ask again
REST = 10  # times as long as a piece took
PATIENCE = 10.0  # seconds of typing without a pause, after which it goes on all the same


class BackgroundThrottle:
    """Is told of every request and key. A server that nobody uses catches up as fast as it can."""

    def __init__(self) -> None:
        self._quiet_from = clock.monotonic()
        self._typed = self._typing_since = float("-inf")

    def asked(self) -> None:
        self._quiet_from = clock.monotonic() + MOMENT

    def typed(self) -> None:
        now = clock.monotonic()
        if now - self._typed > MOMENT:
            self._typing_since = now
        self._typed = now

    async def pause(self) -> None:
        """Waits while somebody types: a key and its echo take less time than a piece of work."""
        while (wait := self._typed + MOMENT - clock.monotonic()) > 0:
            if self._typed - self._typing_since > PATIENCE:
                return
            await asyncio.sleep(wait)

    @asynccontextmanager
    async def piece(self) -> AsyncIterator[None]:
        """The block is a piece of work."""
        await self.pause()
        began = clock.monotonic()
        yield
        ended = clock.monotonic()
        if ended < self._quiet_from:
            await asyncio.sleep(min(MOMENT, REST * (ended - began)))
