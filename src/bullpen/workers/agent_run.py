"""Commit changes of one run of an agent, as long as it is the current run of its worker."""

from collections.abc import Callable

from ..domain.snapshot import Snapshot, Worker
from ..log.log import Change, SessionLog
from .conversation_change import ConversationChange
from .worker_services import WorkerServices


class AgentRun:
    """One run of an agent. `worker` is its state at the time when this server started or adopted the run."""

    def __init__(self, worker: Worker, log: SessionLog, services: WorkerServices) -> None:
        self.worker = worker
        self.log = log
        self.services = services

    @property
    def is_current(self) -> bool:
        """Whether the worker has neither ended nor been restarted since."""
        return self.begin_change(self.log.snapshot) is not None

    def begin_change(self, snapshot: Snapshot) -> ConversationChange | None:
        """Return an empty change on this snapshot, or None if the run is not current in it."""
        now = snapshot.worker(self.worker.id)
        return ConversationChange(snapshot, now.id) if now.run == self.worker.run and now.alive else None

    async def commit(self, decide: Callable[[ConversationChange], Change]) -> None:
        """Record what has happened, waiting while the disk is full. Do nothing if the run is not current."""

        def in_session(snapshot: Snapshot) -> Change:
            change = self.begin_change(snapshot)
            return Change() if change is None else decide(change)

        await self.log.change(in_session, patient=True)
