"""A task group whose tasks end with its block: what runs in the background has an owner."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class _Over(Exception):
    """Raised inside the group to end what still runs in it."""


@asynccontextmanager
async def background() -> AsyncIterator[asyncio.TaskGroup]:
    """Tasks started in the group are cancelled, and waited for, when the block is left."""
    try:
        async with asyncio.TaskGroup() as tasks:
            yield tasks
            raise _Over
    except* _Over:
        pass
