"""Poll a server for a condition without wasting processor time."""

import asyncio
import time

SHORTEST, LONGEST = 0.02, 0.1  # seconds


class Polling:
    """The pauses of one wait. Each is a fifth of the time so far, so that a long wait needs few requests."""

    def __init__(self) -> None:
        self._begun = time.monotonic()

    async def pause(self) -> None:
        await asyncio.sleep(min(max((time.monotonic() - self._begun) / 5, SHORTEST), LONGEST))
