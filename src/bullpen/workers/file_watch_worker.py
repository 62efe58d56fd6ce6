"""A worker without a process: it watches something and tells each time that it is different."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import ClassVar

from ..domain.errors import BullpenError
from ..domain.events import Draft, Fact, WorkerFailed, WorkerReady
from ..domain.failures import describe_failure
from ..domain.snapshot import Snapshot, Worker
from ..domain.states import WorkerState
from ..log.log import Change, SessionLog
from .worker_services import WorkerServices

PACE = 1.0  # seconds between two facts at least: an agent at work changes files all the time


class FileWatchWorker(ABC):
    """One run of a worker that shows files. A kind says what it watches and what it tells."""

    tells: ClassVar[type[Fact]]

    def __init__(self, worker: Worker, log: SessionLog, workshop: WorkerServices) -> None:
        self.worker = worker
        self._log = log
        self._workshop = workshop
        self._told: Fact | None = None
        self._living: asyncio.Future[None] | None = None

    async def live(self) -> None:
        """Until it is stopped, or what it shows is gone."""
        self._living = asyncio.ensure_future(self._watch())
        try:
            await self._living
        except asyncio.CancelledError:
            if not self._stopped():
                raise
        except (BullpenError, OSError) as error:
            await self._record(WorkerFailed(error=describe_failure(error)))

    async def stop(self) -> None:
        if self._living is not None:
            self._living.cancel()

    @abstractmethod
    def changes(self) -> AsyncGenerator[None]:
        """One item each time it is worth looking again."""

    @abstractmethod
    async def look(self) -> Fact:
        """What is to be told now."""

    async def _watch(self) -> None:
        if self.worker.state is WorkerState.ACTIVE:  # told by the server before us
            self._told = await self._workshop.store.newest(self._log.id, self.worker.id, self.tells)
        await self._tell(await self.look())
        async with aclosing(self.changes()) as changes:
            async for _ in changes:
                await self._tell(await self.look())
                await asyncio.sleep(PACE)

    async def _tell(self, fact: Fact) -> None:
        """Once a run it says that it is there; after that, only what is news."""
        if fact == self._told:
            return
        ready = [WorkerReady()] if self._now().state is WorkerState.SPAWNING else []
        await self._record(*ready, fact)
        self._told = fact

    async def _record(self, *facts: Fact) -> None:
        def decide(snapshot: Snapshot) -> Change:
            now = snapshot.worker(self.worker.id)
            if now.run != self.worker.run or not now.alive:
                return Change()
            return Change(drafts=[Draft(fact, now.id, now.role) for fact in facts])

        await self._log.change(decide, patient=True)

    def _now(self) -> Worker:
        return self._log.snapshot.worker(self.worker.id)

    def _stopped(self) -> bool:
        now = self._now()
        return now.run != self.worker.run or not now.alive
