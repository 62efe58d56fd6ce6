"""The open sessions of this server, by id, and everyone who wants to know when one changes."""

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
from .purging import SessionPurger
from .reaper import IdleReaper
from .session import Session
from .slots import AgentSlots
from .tasks import BackgroundTasks, keep_going

log = structlog.get_logger()

Watcher = Callable[[str, Snapshot | None], None]

KEPT_OPEN = 64  # sessions nobody runs or looks at that stay in memory


class Sessions:
    """Opens a session on first need; it stays while something runs in it or somebody holds it."""

    def __init__(
        self,
        store: EventStore,
        workshop: WorkerServices,
        tasks: BackgroundTasks,
        idle_seconds: float | None = None,
    ) -> None:
        self.store = store
        self.workshop = workshop
        self.taken_up = asyncio.Event()
        self.importing = asyncio.Lock()
        self.imported: set[str] = set()  # sessions whose recording came from elsewhere, by id
        self.courtesy = BackgroundThrottle()
        self.purging = SessionPurger(store, workshop, tasks)
        self._tasks = tasks
        self._open: WeakValueDictionary[str, Session] = WeakValueDictionary()
        self._recent: deque[Session] = deque(maxlen=KEPT_OPEN)
        self._opening: dict[str, asyncio.Lock] = {}
        self._watchers: set[Watcher] = set()
        self._slots = AgentSlots(workshop.config.max_sessions)
        minutes = workshop.config.idle_timeout
        self._reaper = IdleReaper(minutes * 60 if idle_seconds is None else idle_seconds, tasks)

    @property
    def slots(self) -> AgentSlots:
        return self._slots

    async def get(self, session_id: str) -> Session:
        """The session, opened when it was not; NotFound when there is none.

        Waits until the workers of the last server have been taken up: before that nobody may touch one.
        """
        await self.taken_up.wait()
        return await self.open(session_id)

    def workspace_of(self, snapshot: Snapshot, worker_id: str | None = None) -> str:
        """Return the directory of a session or of one of its workers; Conflict if it was imported."""
        if snapshot.id in self.imported:
            raise Conflict("this session was imported, so it has no workspace here; it can only be looked at")
        return snapshot.location_path if worker_id is None else snapshot.worker(worker_id).workspace

    async def open(self, session_id: str) -> Session:
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

    def welcome(self, session_log: SessionLog) -> Session:
        """Takes in a session that was just made, and tells everyone who watches."""
        session = self.add(session_log)
        self._tell(session.id, session.snapshot)
        return session

    def add(self, session_log: SessionLog) -> Session:
        """Takes a log that was just made or opened into the house."""
        session = Session(session_log, self.workshop, self._tasks, self._slots)
        session_log.on_commit = lambda _: self._changed(session)
        self._slots.update(session.snapshot)
        self._open[session.id] = session
        self._recent.append(session)
        return session

    def at_hand(self, session_id: str) -> Session | None:
        """The session if it is open."""
        return self._open.get(session_id)

    def in_memory(self) -> list[Session]:
        """The open sessions: all in which something runs, and some more."""
        return list(self._open.values())

    def follow_all(self) -> None:
        """What the house goes by has changed: every open session looks again at what is called for."""
        for session in self.in_memory():
            session.follow()

    def note(self, session: Session) -> None:
        """A session was taken up: its idle time counts from now."""
        self._reaper.note(session)

    async def purge(self, session_id: str) -> None:
        """Removes everything of a session that has ended; its worktree stays."""
        session = await self.get(session_id)
        if session.snapshot.status is SessionStatus.ACTIVE:
            raise Conflict("only a session that has ended can be purged")
        await self.store.hide(session_id)  # when that fails nothing has changed
        session.close()
        self._open.pop(session_id, None)
        self._tell(session_id, None)
        await self.purging.remove(session_id, session.snapshot.workers)

    def run(self, work: Callable[[], Coroutine[None, None, None]], name: str) -> None:
        """Work that goes on for as long as the house stands, which a mistake in it does not take along."""
        self._tasks.create_task(keep_going(work, name), name=name)

    def end_stray(self, child: ChildHandle) -> None:
        """Ends a process whose session is gone, and what it left on the disk."""
        self._tasks.create_task(self._end_stray(child), name=f"stray {child.worker_id}")

    def end_earlier(self, child: ChildHandle) -> None:
        """Ends a process of a run whose worker has begun another since; what it said stays."""
        burial = self.workshop.children.bury(child)
        self._tasks.create_task(burial, name=f"earlier run of {child.worker_id}")

    async def _end_stray(self, child: ChildHandle) -> None:
        await child.stop()
        await self.workshop.children.bury(child)
        try:
            await self.workshop.forget(child.worker_id)
        except BullpenError as error:
            log.warning("the recording of no session stays", worker=child.worker_id, reason=str(error))

    @asynccontextmanager
    async def watching(self, changed: Watcher) -> AsyncIterator[None]:
        """Calls `changed` with every snapshot that becomes true while the block runs; None: it is gone."""
        self._watchers.add(changed)
        try:
            yield
        finally:
            self._watchers.discard(changed)

    def _changed(self, session: Session) -> None:
        self._slots.update(session.snapshot)
        session.follow()
        self._reaper.note(session)
        self._tell(session.id, session.snapshot)

    def _tell(self, session_id: str, snapshot: Snapshot | None) -> None:
        for changed in tuple(self._watchers):
            changed(session_id, snapshot)
