"""One run of an agent, and the changes that are made in its name as long as it is the one that counts."""

from collections.abc import Callable

from ..domain.snapshot import Snapshot, Worker
from ..log.log import Change, SessionLog
from .conversation_change import ConversationChange
from .worker_services import WorkerServices


class AgentRun:
    """`worker` is as it was when this run was taken up."""

    def __init__(self, worker: Worker, log: SessionLog, workshop: WorkerServices) -> None:
        self.worker = worker
        self.log = log
        self.workshop = workshop

    @property
    def counts(self) -> bool:
        """Whether the worker has neither ended nor been restarted."""
        return self.exchange(self.log.snapshot) is not None

    def exchange(self, snapshot: Snapshot) -> ConversationChange | None:
        now = snapshot.worker(self.worker.id)
        return ConversationChange(snapshot, now.id) if now.run == self.worker.run and now.alive else None

    async def change(self, decide: Callable[[ConversationChange], Change]) -> None:
        """Tells what has happened already, however full the disk is; nothing when the run counts no more."""

        def in_session(snapshot: Snapshot) -> Change:
            exchange = self.exchange(snapshot)
            return Change() if exchange is None else decide(exchange)

        await self.log.change(in_session, patient=True)
