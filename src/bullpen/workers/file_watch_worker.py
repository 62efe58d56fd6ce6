"""Run a worker without a process: watch files, and record a fact each time that they have changed."""

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

MIN_INTERVAL = 1.0  # seconds between two facts: a working agent changes files all the time


class FileWatchWorker(ABC):
    """One run of a worker that shows files. A subclass watches the files and reads them.

    `fact_type` is the type of the facts that the subclass records.
    """

    fact_type: ClassVar[type[Fact]]

    def __init__(self, worker: Worker, log: SessionLog, services: WorkerServices) -> None:
        self.worker = worker
        self._log = log
        self._services = services
        self._recorded: Fact | None = None
        self._watching: asyncio.Future[None] | None = None

    async def run(self) -> None:
        """Watch until the worker is stopped, or fail it if the files cannot be read."""
        self._watching = asyncio.ensure_future(self._watch())
        try:
            await self._watching
        except asyncio.CancelledError:
            if not self._stopped():
                raise
        except (BullpenError, OSError) as error:
            await self._record(WorkerFailed(error=describe_failure(error)))

    async def stop(self) -> None:
        """End the watch. The caller has recorded the end."""
        if self._watching is not None:
            self._watching.cancel()

    @abstractmethod
    def changes(self) -> AsyncGenerator[None]:
        """Yield each time that the files may have changed."""

    @abstractmethod
    async def read(self) -> Fact:
        """Return the fact that describes the files now."""

    async def _watch(self) -> None:
        """Record the files if they differ from the recorded ones: now, and after each change."""
        if self.worker.state is WorkerState.ACTIVE:  # recorded by an earlier server process
            self._recorded = await self._services.store.newest_fact(
                self._log.id, self.worker.id, self.fact_type
            )
        await self._record_news(await self.read())
        async with aclosing(self.changes()) as changes:
            async for _ in changes:
                await self._record_news(await self.read())
                await asyncio.sleep(MIN_INTERVAL)

    async def _record_news(self, fact: Fact) -> None:
        """Record the fact if it differs from the last one, the first time together with WorkerReady."""
        if fact == self._recorded:
            return
        ready = [WorkerReady()] if self._now().state is WorkerState.SPAWNING else []
        await self._record(*ready, fact)
        self._recorded = fact

    async def _record(self, *facts: Fact) -> None:
        """Record facts of this run, unless the worker was ended or restarted meanwhile."""

        def decide(snapshot: Snapshot) -> Change:
            now = snapshot.worker(self.worker.id)
            if now.run != self.worker.run or not now.alive:
                return Change()
            return Change(drafts=[Draft(fact, now.id, now.role) for fact in facts])

        await self._log.change(decide, patient=True)

    def _now(self) -> Worker:
        """Return the worker as it is in the newest snapshot."""
        return self._log.snapshot.worker(self.worker.id)

    def _stopped(self) -> bool:
        """Return whether the worker was ended or restarted."""
        now = self._now()
        return now.run != self.worker.run or not now.alive
