"""Throttle background jobs (indexing, recording) while requests or keystrokes are being served."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from .. import clock

RECENT_SECONDS = 0.25  # after a request or keystroke; the next one is likely within this time
REST_FACTOR = 10  # a job pauses this many times as long as its last step took
MAX_TYPING_SECONDS = 10.0  # of typing without a pause; then the jobs continue nevertheless


class BackgroundThrottle:
    """Knows when requests and keystrokes arrived; background jobs call it before and after each step.

    While no client uses the server, jobs run at full speed.
    """

    def __init__(self) -> None:
        self._quiet_from = clock.monotonic()
        self._typed = self._typing_since = float("-inf")

    def note_request(self) -> None:
        """Record that a request arrived now."""
        self._quiet_from = clock.monotonic() + RECENT_SECONDS

    def note_keystroke(self) -> None:
        """Record that terminal input arrived now."""
        now = clock.monotonic()
        if now - self._typed > RECENT_SECONDS:
            self._typing_since = now
        self._typed = now

    async def wait_while_typing(self) -> None:
        """Wait while keystrokes arrive: a step of a job would delay their echo."""
        while (wait := self._typed + RECENT_SECONDS - clock.monotonic()) > 0:
            if self._typed - self._typing_since > MAX_TYPING_SECONDS:
                return
            await asyncio.sleep(wait)

    @asynccontextmanager
    async def step(self) -> AsyncIterator[None]:
        """Run the block as one step of a job, after a pause in typing. Pause after it if requests arrived."""
        await self.wait_while_typing()
        began = clock.monotonic()
        yield
        ended = clock.monotonic()
        if ended < self._quiet_from:
            await asyncio.sleep(min(RECENT_SECONDS, REST_FACTOR * (ended - began)))
