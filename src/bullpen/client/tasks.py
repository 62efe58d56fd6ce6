"""One task beside a body of code, for code whose callers expect plain exceptions."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any


@asynccontextmanager
async def beside(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Runs work until the body is done; whichever of the two fails first, its error comes out as it is."""
    try:
        async with asyncio.TaskGroup() as tasks:
            task = tasks.create_task(work)
            yield
            task.cancel()
    except BaseExceptionGroup as group:
        raise group.exceptions[0] from None
