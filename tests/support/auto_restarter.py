"""Start the server again whenever it was killed; make strace kill every second start during its recovery."""

import asyncio
import random
from contextlib import AsyncExitStack

from .server import Server
from .strace import killed_at


class AutoRestarter:
    """Watches a server until `close`. `deaths` counts how often the server died."""

    def __init__(self, server: Server, stack: AsyncExitStack) -> None:
        self._server = server
        self._stack = stack
        self._watching = asyncio.create_task(self._watch())
        self.deaths = 0

    async def close(self) -> None:
        self._watching.cancel()
        await asyncio.wait([self._watching])

    async def _watch(self) -> None:
        while True:
            process = self._server.process
            assert process is not None
            if process.poll() is not None:
                self.deaths += 1
                await self._server.start(wait=False)
                if self.deaths % 2:
                    await self._stack.enter_async_context(
                        killed_at(self._server.pid, random.randrange(1, 30))
                    )
            await asyncio.sleep(0.02)
