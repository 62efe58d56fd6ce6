"""A task group whose tasks end with its block: what runs in the background has an owner."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from contextvars import Context
from typing import Any, TypeVar

import structlog

from ..domain.failures import explain

BEGIN_AGAIN = 10.0  # seconds

log = structlog.get_logger()
T = TypeVar("T")


class _BlockEnded(Exception):
    """Raised inside the group to end what still runs in it."""


class BackgroundTasks(asyncio.TaskGroup):
    """A group whose tasks fail alone: what one of them raises is told, and the others go on.

    It says when it takes no more: what a late commit calls for is left to the next start.
    """

    over = False

    def create_task(  # type: ignore[override]  # what fails comes to None
        self, coro: Coroutine[Any, Any, T], *, name: str | None = None, context: Context | None = None
    ) -> asyncio.Task[T | None]:
        task = super().create_task(_tell_if_it_fails(coro, name), name=name, context=context)
        task.add_done_callback(lambda _: coro.close())  # one that is cancelled before it begins
        return task


@asynccontextmanager
async def background() -> AsyncIterator[BackgroundTasks]:
    """Tasks started in the group are cancelled, and waited for, when the block is left."""
    try:
        async with BackgroundTasks() as tasks:
            try:
                yield tasks
            finally:
                tasks.over = True
            raise _BlockEnded
    except* _BlockEnded:
        pass


async def _tell_if_it_fails(work: Coroutine[Any, Any, T], name: str | None) -> T | None:
    try:
        return await work
    except Exception as error:
        if (failure := explain(error)) is None:
            log.error("a task failed", task=name, exc_info=error)
        else:
            log.warning("a task failed", task=name, reason=str(failure))
        return None


async def keep_going(
    work: Callable[[], Coroutine[None, None, None]], name: str, pause: float = BEGIN_AGAIN
) -> None:
    """What fails by a mistake of ours is told and begun again: the others in its group go on."""
    while True:
        try:
            return await work()
        except Exception as error:
            if (failure := explain(error)) is None:
                log.error("failed, and is begun again", work=name, exc_info=error)
            else:
                log.warning("failed, and is begun again", work=name, reason=str(failure))
            await asyncio.sleep(pause)
