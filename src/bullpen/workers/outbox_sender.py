"""Takes the lines of the outbox to the agent, each once and in order.

The same path after a commit and after a restart: what lies above the last number the keeper has of us is
written, and what it has is removed.
"""

from ..domain.errors import Conflict, RemoteFault
from ..log.log import SessionLog
from ..store.events import EventStore
from .children import ChildHandle


class OutboxSender:
    """The way from the outbox of one run to its child."""

    def __init__(self, log: SessionLog, store: EventStore, child: ChildHandle) -> None:
        self._log = log
        self._store = store
        self._child = child

    async def carry(self) -> None:
        """Until the child takes nothing any more; how it ended is told elsewhere."""
        written, seen = self._child.written, 0
        while True:
            sent = self._sent()
            if sent <= max(written, seen):
                await self._log.news.wait()
                continue
            seen = sent
            try:
                written = await self._write_above(written)
            except (Conflict, RemoteFault):
                return
            await self._store.outbox_done(self._child.worker_id, self._child.run, written)

    async def finish(self) -> None:
        """What was said to a run that is being ended reaches it before its input ends, if it listens."""
        try:
            await self._write_above(self._child.written)
        except (Conflict, RemoteFault):
            return

    async def _before(self, line: bytes) -> None:
        """What a line has to wait for."""

    def _sent(self) -> int:
        snapshot = self._log.snapshot
        if snapshot.worker(self._child.worker_id).run != self._child.run:
            return 0
        return snapshot.conversations[self._child.worker_id].traffic.sent

    async def _write_above(self, written: int) -> int:
        lines = await self._store.outbox(self._child.worker_id, self._child.run)
        for n, line in lines:
            if n > written:
                await self._before(line)
                written = await self._child.take(n, line)
        return written
