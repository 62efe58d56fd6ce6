"""A task group for background jobs. A failed task does not affect others; the end of the block ends all."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from contextvars import Context
from typing import Any, TypeVar

import structlog

from ..domain.failures import explain

RESTART_SECONDS = 10.0  # until a job that failed is started again

log = structlog.get_logger()
T = TypeVar("T")


class _BlockEnded(Exception):
    """Raised inside the group to cancel its remaining tasks."""


class BackgroundTasks(asyncio.TaskGroup):
    """A task group in which an exception of a task is logged and the other tasks continue.

    `over` is true once the group is ending; callers then start no more tasks. The next server start does
    the rest.
    """

    over = False

    def create_task(  # type: ignore[override]  # a failed task returns None
        self, coro: Coroutine[Any, Any, T], *, name: str | None = None, context: Context | None = None
    ) -> asyncio.Task[T | None]:
        """Start a task. If it raises, the error is logged and its result is None."""
        task = super().create_task(_log_failure(coro, name), name=name, context=context)
        task.add_done_callback(lambda _: coro.close())  # in case the task is cancelled before it starts
        return task


@asynccontextmanager
async def background_tasks() -> AsyncIterator[BackgroundTasks]:
    """Yield a task group; cancel its tasks and wait for them when the block is left."""
    try:
        async with BackgroundTasks() as tasks:
            try:
                yield tasks
            finally:
                tasks.over = True
            raise _BlockEnded
    except* _BlockEnded:
        pass


async def _log_failure(work: Coroutine[Any, Any, T], name: str | None) -> T | None:
    """Await `work` and return its result; log an exception instead of raising it, and return None."""
    try:
        return await work
    except Exception as error:
        if (failure := explain(error)) is None:
            log.error("a task failed", task=name, exc_info=error)
        else:
            log.warning("a task failed", task=name, reason=str(failure))
        return None


async def run_until_success(
    work: Callable[[], Coroutine[None, None, None]], name: str, pause: float = RESTART_SECONDS
) -> None:
    """Run a job until it returns; when it raises, log the error and start it again after a pause."""
    while True:
        try:
            return await work()
        except Exception as error:
            if (failure := explain(error)) is None:
                log.error("a background job failed and is started again", job=name, exc_info=error)
            else:
                log.warning("a background job failed and is started again", job=name, reason=str(failure))
            await asyncio.sleep(pause)
