"""Delete purged sessions: first their files, then their rows.

A purged session is hidden first. If a step fails (full disk, a process that still runs, an unreachable
keeper), the rest is deleted later, if necessary by the next server process.
"""

import asyncio
from collections.abc import Collection

import structlog

from ..domain.errors import BullpenError, NotFound
from ..store.events import EventStore
from ..workers.worker_services import WorkerServices
from .tasks import BackgroundTasks

log = structlog.get_logger()

RETRY_SECONDS = 10.0


class SessionPurger:
    """Deletes hidden sessions, and tries again until everything is deleted."""

    def __init__(self, store: EventStore, services: WorkerServices, tasks: BackgroundTasks) -> None:
        self._store = store
        self._services = services
        self._tasks = tasks

    async def finish(self) -> None:
        """Delete what the previous server process had hidden but not deleted completely."""
        for session_id, worker_ids in (await self._store.unfinished_purges()).items():
            await self.remove(session_id, worker_ids)

    async def remove(self, session_id: str, worker_ids: Collection[str]) -> None:
        """Delete a hidden session; if that fails, try again in the background."""
        if not await self._delete(session_id, worker_ids):
            self._tasks.create_task(self._retry(session_id, worker_ids), name=f"purge {session_id}")

    async def _retry(self, session_id: str, worker_ids: Collection[str]) -> None:
        """Try to delete again and again, until everything is deleted."""
        while True:
            await asyncio.sleep(RETRY_SECONDS)
            if await self._delete(session_id, worker_ids):
                return

    async def _delete(self, session_id: str, worker_ids: Collection[str]) -> bool:
        """Delete the files of a session, then its rows; return False if that must be tried again."""
        services = self._services
        try:
            await asyncio.to_thread(services.recordings.remove, session_id)
            await asyncio.to_thread(services.images.remove_all, session_id)
            await asyncio.to_thread(services.sandbox.planner.remove_temporary_directory, session_id)
            for worker_id in worker_ids:
                await services.remove_files(worker_id)
            await self._store.purge(session_id)
        except NotFound:
            return True  # deleted meanwhile
        except (BullpenError, OSError) as error:
            log.warning("a purged session could not be deleted yet", session=session_id, reason=str(error))
            return False
        return True
