"""Coroutines that run in turns in one thread, as with asyncio, whose import costs more than a whole turn."""

import math
import select
import time
from collections.abc import Awaitable, Callable, Generator, Iterator


class Wait:
    """A coroutine awaits it until a condition is true, some seconds have passed, or a file has input."""

    def __init__(
        self, condition: Callable[[], bool] = bool, seconds: float = math.inf, file: int | None = None
    ) -> None:
        self.file = file
        self._condition = condition
        self._end = time.monotonic() + seconds

    def __await__(self) -> Generator["Wait"]:
        yield self

    def seconds_left(self) -> float:
        return 0 if self._condition() else max(0, self._end - time.monotonic())


class Tasks:
    """Continues each coroutine when its wait is over: first those that wait longest."""

    def __init__(self) -> None:
        self._waits: dict[Iterator[Wait], Wait] = {}

    def start(self, task: Awaitable[None]) -> None:
        """Run a coroutine to its first wait."""
        self._continue(task.__await__())

    def run(self) -> None:
        """Continue the coroutines until all have returned."""
        while self._waits:
            seconds = min(wait.seconds_left() for wait in self._waits.values())
            files = [wait.file for wait in self._waits.values() if wait.file is not None]
            readable, _, _ = select.select(files, [], [], None if seconds == math.inf else seconds)
            for task, wait in list(self._waits.items()):
                if wait.file in readable or not wait.seconds_left():
                    del self._waits[task]
                    self._continue(task)

    def _continue(self, task: Iterator[Wait]) -> None:
        if wait := next(task, None):
            self._waits[task] = wait
