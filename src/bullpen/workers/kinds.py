"""The kinds of worker there are: a new kind is one file and one entry here (R71)."""

from collections.abc import Callable
from typing import Protocol

from ..domain.snapshot import Worker
from ..log.log import SessionLog
from .terminal import Terminal
from .workshop import Workshop


class Running(Protocol):
    """One run of a worker, as its session sees it."""

    async def live(self) -> None:
        """The whole run; returns when its end is in the log."""

    async def stop(self) -> None:
        """Ends it; its end has been decided before."""


KINDS: dict[str, Callable[[Worker, SessionLog, Workshop], Running]] = {
    "terminal": Terminal,
}
