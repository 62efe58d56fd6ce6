"""A task group whose tasks end with its block: what runs in the background has an owner."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager

import structlog

BEGIN_AGAIN = 10.0  # seconds

log = structlog.get_logger()


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


async def keep_going(
    work: Callable[[], Coroutine[None, None, None]], name: str, pause: float = BEGIN_AGAIN
) -> None:
    """What fails by a mistake of ours is told and begun again: the others in its group go on."""
    while True:
        try:
            return await work()
        except Exception as error:
            log.error("failed, and is begun again", work=name, exc_info=error)
            await asyncio.sleep(pause)
