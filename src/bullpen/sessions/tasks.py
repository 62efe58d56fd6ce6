"""A task group whose tasks end with its block: what runs in the background has an owner."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class _Over(Exception):
    """Raised inside the group to end what still runs in it."""


class Tasks(asyncio.TaskGroup):
    """A group that says when it takes no more: what a late commit calls for is left to the next start."""

    over = False


@asynccontextmanager
async def background() -> AsyncIterator[Tasks]:
    """Tasks started in the group are cancelled, and waited for, when the block is left."""
    try:
        async with Tasks() as tasks:
            try:
                yield tasks
            finally:
                tasks.over = True
            raise _Over
    except* _Over:
        pass
