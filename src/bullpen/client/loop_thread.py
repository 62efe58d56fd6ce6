"""An event loop in a thread of its own, for a thread that cannot await."""

import asyncio
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import Any, TypeVar

Result = TypeVar("Result")


class LoopThread:
    """Runs coroutines, iterators and contexts of one loop for other threads."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="bullpen-client", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self.run(self._loop.shutdown_asyncgens())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except KeyboardInterrupt:
            future.cancel()
            raise

    def iterate(self, items: AsyncIterator[Result]) -> Iterator[Result]:
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
    def hold(self, context: AbstractAsyncContextManager[Result]) -> Iterator[Result]:
        """Enters and leaves a context in one task, as task groups demand."""
        opened: Future[Result] = Future()
        release = asyncio.Event()

        async def keep() -> None:
            try:
                async with context as value:
                    opened.set_result(value)
                    await release.wait()
            except BaseException as error:
                if not opened.done():
                    opened.set_exception(error)
                raise

        kept = asyncio.run_coroutine_threadsafe(keep(), self._loop)
        value = opened.result()
        try:
            yield value
        finally:
            self._loop.call_soon_threadsafe(release.set)
            kept.result()
