"""Run a web worker: it has no process, because the browser embeds the page of a program on this machine."""

import asyncio

from ..domain.events import Draft, WorkerReady
from ..domain.snapshot import Snapshot, Worker
from ..domain.states import WorkerState
from ..log.log import Change, SessionLog
from .worker_services import WorkerServices


class WebWorker:
    """One run of a web worker."""

    def __init__(self, worker: Worker, log: SessionLog, _services: WorkerServices) -> None:
        self.worker = worker
        self._log = log
        self._stopped = asyncio.Event()

    async def run(self) -> None:
        """Record that the worker is ready, and wait until it is stopped."""
        await self._log.change(self._become_ready, patient=True)
        await self._stopped.wait()

    async def stop(self) -> None:
        """End the run. The caller has recorded the end."""
        self._stopped.set()

    def _become_ready(self, snapshot: Snapshot) -> Change:
        """Return the change that makes this run active, unless it is active or over."""
        now = snapshot.worker(self.worker.id)
        if now.run != self.worker.run or now.state is not WorkerState.SPAWNING:
            return Change()
        return Change(drafts=[Draft(WorkerReady(), now.id, now.role)])
