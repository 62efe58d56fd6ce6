"""What catches up behind the house gives way to whoever asks: it rests between its pieces of work."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from .. import clock

MOMENT = 0.25  # seconds: who asked this lately may ask again
REST = 10  # times as long as a piece took


class Courtesy:
    """Is told of every request. A server that nobody asks anything catches up as fast as it can."""

    def __init__(self) -> None:
        self._quiet_from = clock.monotonic()

    def asked(self) -> None:
        self._quiet_from = clock.monotonic() + MOMENT

    @asynccontextmanager
    async def piece(self) -> AsyncIterator[None]:
        """The block is a piece of work."""
        began = clock.monotonic()
        yield
        ended = clock.monotonic()
        if ended < self._quiet_from:
            await asyncio.sleep(min(MOMENT, REST * (ended - began)))
