"""The open sessions of this server by id, and the watchers to notify when a session changes."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from weakref import WeakValueDictionary

import structlog

from ..domain.errors import BullpenError, Conflict, NotFound
from ..domain.ids import is_safe_id
from ..domain.snapshot import Snapshot
from ..domain.states import SessionStatus
from ..log.log import SessionLog
from ..store.events import EventStore
from ..workers.children import ChildHandle
from ..workers.worker_services import WorkerServices
from .background_throttle import BackgroundThrottle
from .idle_reaper import IdleReaper
from .purging import SessionPurger
from .session import Session
from .slots import AgentSlots
from .tasks import BackgroundTasks, run_until_success

log = structlog.get_logger()

Watcher = Callable[[str, Snapshot | None], None]

MAX_IDLE_SESSIONS = 64  # sessions without a running worker or a viewer that stay in memory


class Sessions:
    """All sessions of a server. A session is opened on first use.

    It stays in memory while a worker runs in it or a caller holds a reference, and some time longer.
    """

    def __init__(
        self,
        store: EventStore,
        services: WorkerServices,
        tasks: BackgroundTasks,
        idle_seconds: float | None = None,
    ) -> None:
        self.store = store
        self.services = services
        self.workers_resumed = asyncio.Event()
        self.import_lock = asyncio.Lock()
        self.imported_ids: set[str] = set()  # sessions whose recording came from elsewhere, by id
        self.throttle = BackgroundThrottle()
        self.purger = SessionPurger(store, services, tasks)
        self._tasks = tasks
        self._open: WeakValueDictionary[str, Session] = WeakValueDictionary()
        self._recent: deque[Session] = deque(maxlen=MAX_IDLE_SESSIONS)
        self._opening: dict[str, asyncio.Lock] = {}
        self._watchers: set[Watcher] = set()
        self._slots = AgentSlots(services.config.max_sessions)
        minutes = services.config.idle_timeout
        self._reaper = IdleReaper(minutes * 60 if idle_seconds is None else idle_seconds, tasks)

    @property
    def slots(self) -> AgentSlots:
        """The limit on sessions with a running agent, and the count of these sessions."""
        return self._slots

    async def get(self, session_id: str) -> Session:
        """Return a session; open it if needed. Raise NotFound if there is none.

        After a start, wait first until all workers of the previous server process are continued.
        """
        await self.workers_resumed.wait()
        return await self.open(session_id)

    def workspace_of(self, snapshot: Snapshot, worker_id: str | None = None) -> str:
        """Return the directory of a session or of one of its workers; raise Conflict if it was imported."""
        if snapshot.id in self.imported_ids:
            raise Conflict("this session was imported, so it has no workspace here; it can only be looked at")
        return snapshot.location_path if worker_id is None else snapshot.worker(worker_id).workspace

    async def open(self, session_id: str) -> Session:
        """Return a session, opened if needed; raise NotFound if there is none.

        Do not wait for the workers of the previous server process, as `get` does.
        """
        if session := self._open.get(session_id):
            return session
        if not is_safe_id(session_id):
            raise NotFound("no such session")
        lock = self._opening.setdefault(session_id, asyncio.Lock())
        try:
            async with lock:
                if session := self._open.get(session_id):
                    return session
                return self.add(await SessionLog.open(self.store, session_id))
        finally:
            if not lock.locked():
                self._opening.pop(session_id, None)

    def add_new(self, session_log: SessionLog) -> Session:
        """Open the session of a log that was just created, and notify the watchers."""
        session = self.add(session_log)
        self.notify_watchers(session.id, session.snapshot)
        return session

    def add(self, session_log: SessionLog) -> Session:
        """Open the session of a log, and keep it in memory. Watchers are not notified."""
        session = Session(session_log, self.services, self._tasks, self._slots)
        session_log.on_commit = lambda _: self._on_change(session)
        self._slots.update(session.snapshot)
        self._open[session.id] = session
        self._recent.append(session)
        return session

    def get_open(self, session_id: str) -> Session | None:
        """Return the session if it is open, else None."""
        return self._open.get(session_id)

    def list_open(self) -> list[Session]:
        """Return the open sessions: every session with a running worker, and some others."""
        return list(self._open.values())

    def reconcile_all(self) -> None:
        """Reconcile every open session, because settings or rules of the server have changed."""
        for session in self.list_open():
            session.reconcile()

    def restart_idle_timer(self, session: Session) -> None:
        """Count the idle time of a session from now."""
        self._reaper.restart_timer(session)

    async def purge(self, session_id: str) -> None:
        """Hide an ended session, then delete its events and recordings for good; its worktree stays.

        Raise Conflict if the session has not ended.
        """
        session = await self.get(session_id)
        if session.snapshot.status is SessionStatus.ACTIVE:
            raise Conflict("only a session that has ended can be purged")
        await self.store.hide(session_id)  # if this fails, nothing has changed
        session.close()
        self._open.pop(session_id, None)
        self.notify_watchers(session_id, None)
        await self.purger.remove(session_id, session.snapshot.workers)

    def run_in_background(self, work: Callable[[], Coroutine[None, None, None]], name: str) -> None:
        """Run a job until the server stops; start it again whenever it raises."""
        self._tasks.create_task(run_until_success(work, name), name=name)

    def end_stray_child(self, child: ChildHandle) -> None:
        """Stop a process whose session was purged, and delete its recording, in the background."""
        self._tasks.create_task(self._end_stray_child(child), name=f"stray {child.worker_id}")

    def end_earlier_run(self, child: ChildHandle) -> None:
        """Stop a process of an earlier run of a worker, in the background; its recording stays."""
        stopping = self.services.children.end_and_forget(child)
        self._tasks.create_task(stopping, name=f"earlier run of {child.worker_id}")

    async def _end_stray_child(self, child: ChildHandle) -> None:
        """Stop a child whose session was purged, and remove its files."""
        await child.stop()
        await self.services.children.end_and_forget(child)
        try:
            await self.services.remove_files(child.worker_id)
        except BullpenError as error:
            log.warning(
                "the recording of a purged session could not be deleted",
                worker=child.worker_id,
                reason=str(error),
            )

    @asynccontextmanager
    async def watching(self, changed: Watcher) -> AsyncIterator[None]:
        """Call `changed` with each new snapshot of any session (None after a purge) while the block runs."""
        self._watchers.add(changed)
        try:
            yield
        finally:
            self._watchers.discard(changed)

    def _on_change(self, session: Session) -> None:
        """Update slots, timers and watchers after an event of a session was stored."""
        self._slots.update(session.snapshot)
        session.reconcile()
        self._reaper.restart_timer(session)
        self.notify_watchers(session.id, session.snapshot)

    def notify_watchers(self, session_id: str, snapshot: Snapshot | None) -> None:
        """Call each watcher with the id and the snapshot of a session; None after a purge."""
        for changed in tuple(self._watchers):
            changed(session_id, snapshot)
