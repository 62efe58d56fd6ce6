"""Send the lines of the outbox to an agent, each exactly once and in order.

A commit and a restart of the server use the same path: lines above the last number that the keeper has
accepted are written, and lines it has are removed from the outbox.
"""

from ..domain.errors import Conflict, RemoteFault
from ..log.log import SessionLog
from ..store.events import EventStore
from .children import ChildHandle


class OutboxSender:
    """Sends the outbox of one run to its child."""

    def __init__(self, log: SessionLog, store: EventStore, child: ChildHandle) -> None:
        self._log = log
        self._store = store
        self._child = child

    async def run(self) -> None:
        """Send each new line, until the child accepts no more input."""
        written, seen = self._child.lines_written, 0
        while True:
            recorded = self._last_recorded()
            if recorded <= max(written, seen):
                await self._log.growth.wait()
                continue
            seen = recorded
            try:
                written = await self._write_above(written)
            except (Conflict, RemoteFault):
                return
            await self._store.remove_delivered_lines(self._child.worker_id, self._child.run, written)

    async def flush(self) -> None:
        """Send what is in the outbox of a run that is about to end, if the child still reads."""
        try:
            await self._write_above(self._child.lines_written)
        except (Conflict, RemoteFault):
            return

    async def _wait_before(self, line: bytes) -> None:
        """Wait until this line may be written. Here each line may at once; a subclass may wait."""

    def _last_recorded(self) -> int:
        """Return the number of the newest line that the log records for this run."""
        snapshot = self._log.snapshot
        if snapshot.worker(self._child.worker_id).run != self._child.run:
            return 0
        return snapshot.conversations[self._child.worker_id].traffic.sent

    async def _write_above(self, written: int) -> int:
        """Write the lines above a number, and return the last number that was accepted."""
        lines = await self._store.undelivered_lines(self._child.worker_id, self._child.run)
        for n, line in lines:
            if n > written:
                await self._wait_before(line)
                written = await self._child.write_line(n, line)
        return written
