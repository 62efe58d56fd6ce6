"""Add the events of all sessions to the search index, in the background.

SQLite has one writer: each batch is one short transaction. While sessions write events, the indexer pauses
many times as long as a batch took, and it also waits during requests and keystrokes. It catches up when
they pause.
"""

import asyncio
from functools import partial

from .. import clock
from ..domain.errors import Unavailable
from ..domain.snapshot import Snapshot
from ..store import search
from .sessions import Sessions

PAUSE_SECONDS = 0.2  # between two rounds; a new event can be found after this time
REST_FACTOR = 40  # while sessions write events, pause this many times as long as a batch took
RETRY_SECONDS = 10.0  # after the database could not write


class EventIndexer:
    """Indexes one batch at a time, of one session after another."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions
        self._store = sessions.store
        self._waiting: dict[str, None] = {}  # session ids, oldest first
        self._wake = asyncio.Event()

    async def run(self) -> None:
        """Index the existing events and then every new event, until the server stops."""
        async with self._sessions.watching(self._on_change):
            await self._sessions.workers_resumed.wait()
            await self.queue_unindexed_sessions()
            while True:
                await self.index_queued()
                self._wake.clear()
                if not self._waiting:
                    await self._wake.wait()
                await asyncio.sleep(PAUSE_SECONDS)

    async def queue_unindexed_sessions(self) -> None:
        """Queue the sessions whose newest events are not in the index yet."""
        self._waiting |= dict.fromkeys(await self._store.database.read(search.sessions_to_index))

    async def index_queued(self) -> None:
        """Index the new events of all queued sessions; repeat one for which the database was unavailable."""
        while self._waiting:
            session_id = next(iter(self._waiting))
            del self._waiting[session_id]
            try:
                await self._index(session_id)
            except Unavailable:
                self._waiting[session_id] = None
                await asyncio.sleep(RETRY_SECONDS)

    async def _index(self, session_id: str) -> None:
        """Index the events of one session, batch by batch, until none is left."""
        while True:
            async with self._sessions.throttle.step():
                started, appended = clock.monotonic(), self._store.appended_events
                after, batch = await self._store.database.read(lambda c: search.read_next(c, session_id))
                if batch.until <= after:
                    return
                await self._store.database.write(
                    partial(search.add_documents, session_id=session_id, batch=batch)
                )
                seconds = clock.monotonic() - started
            if self._store.appended_events != appended:
                await asyncio.sleep(REST_FACTOR * seconds)

    def _on_change(self, session_id: str, snapshot: Snapshot | None) -> None:
        """Queue a changed session; remove a purged one from the queue."""
        if snapshot is None:
            self._waiting.pop(session_id, None)
            return
        self._waiting[session_id] = None
        self._wake.set()
