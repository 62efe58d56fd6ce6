"""Removes what purged sessions leave: their files first, their rows last.

A purged session is hidden before anything of it is removed. What cannot be removed then (the disk is full, a
process of it still ends, its keeper is gone) is removed later, if need be by the next server.
"""

import asyncio
from collections.abc import Collection

import structlog

from ..domain.errors import BullpenError, NotFound
from ..store.events import EventStore
from ..workers.worker_services import WorkerServices
from .tasks import BackgroundTasks

log = structlog.get_logger()

TRY_AGAIN = 10.0  # seconds


class SessionPurger:
    def __init__(self, store: EventStore, workshop: WorkerServices, tasks: BackgroundTasks) -> None:
        self._store = store
        self._workshop = workshop
        self._tasks = tasks

    async def finish(self) -> None:
        """Goes on with what the last server was removing."""
        for session_id, worker_ids in (await self._store.hidden()).items():
            await self.remove(session_id, worker_ids)

    async def remove(self, session_id: str, worker_ids: Collection[str]) -> None:
        """Removes a session that is hidden already: all of it now, or the rest of it later."""
        if not await self._try(session_id, worker_ids):
            self._tasks.create_task(self._try_again(session_id, worker_ids), name=f"purge {session_id}")

    async def _try_again(self, session_id: str, worker_ids: Collection[str]) -> None:
        while True:
            await asyncio.sleep(TRY_AGAIN)
            if await self._try(session_id, worker_ids):
                return

    async def _try(self, session_id: str, worker_ids: Collection[str]) -> bool:
        workshop = self._workshop
        try:
            await asyncio.to_thread(workshop.recordings.forget, session_id)
            await asyncio.to_thread(workshop.images.forget, session_id)
            for worker_id in worker_ids:
                await workshop.forget(worker_id)
            await self._store.purge(session_id)
        except NotFound:
            return True  # somebody was faster
        except (BullpenError, OSError) as error:
            log.warning("a purged session is not removed yet", session=session_id, reason=str(error))
            return False
        return True
