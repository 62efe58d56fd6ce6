"""Run an event loop in its own thread for code that cannot await."""

import asyncio
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import Any, TypeVar

Result = TypeVar("Result")


class LoopThread:
    """An event loop in a thread that runs coroutines, iterators and contexts for other threads."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="bullpen-client", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop the loop and end its thread."""
        self.run(self._loop.shutdown_asyncgens())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run a coroutine in the loop and return its result; cancel it on Ctrl-C."""
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except KeyboardInterrupt:
            future.cancel()
            raise

    def iterate(self, items: AsyncIterator[Result]) -> Iterator[Result]:
        """Yield the items of an asynchronous iterator."""

        async def step() -> tuple[Result] | None:
            async for item in items:
                return (item,)
            return None

        try:
            while (item := self.run(step())) is not None:
                yield item[0]
        finally:
            if isinstance(items, AsyncGenerator) and not self._loop.is_closed():
                self.run(items.aclose())

    @contextmanager
    def enter(self, context: AbstractAsyncContextManager[Result]) -> Iterator[Result]:
        """Enter an asynchronous context, and leave it in the same task, as task groups require."""
        opened: Future[Result] = Future()
        release = asyncio.Event()

        async def hold_open() -> None:
            try:
                async with context as value:
                    opened.set_result(value)
                    await release.wait()
            except BaseException as error:
                if not opened.done():
                    opened.set_exception(error)
                raise

        holding = asyncio.run_coroutine_threadsafe(hold_open(), self._loop)
        value = opened.result()
        try:
            yield value
        finally:
            self._loop.call_soon_threadsafe(release.set)
            holding.result()
