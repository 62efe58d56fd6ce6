"""Follows the logs so that what is in them can be found, after the commit and never in its way.

SQLite has one writer: each batch is a short turn of it, and while sessions write we rest many times as long
as a batch took, some time too while somebody asks or types. What is behind catches up when they pause, and at
the next start.
"""

import asyncio
from functools import partial

from .. import clock
from ..domain.errors import Unavailable
from ..domain.snapshot import Snapshot
from ..store import search
from .sessions import Sessions

PAUSE = 0.2  # between looks: what is said now is found a moment later
REST = 40  # times as long as a batch took, while others write
NO_ROOM_PAUSE = 10.0


class EventIndexer:
    """One batch at a time, of one session after another."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions
        self._store = sessions.store
        self._waiting: dict[str, None] = {}  # in the order they were noted
        self._wake = asyncio.Event()

    async def follow(self) -> None:
        """For as long as the house stands."""
        async with self._sessions.watching(self._note):
            await self._sessions.taken_up.wait()
            await self.take_up()
            while True:
                await self.catch_up()
                self._wake.clear()
                if not self._waiting:
                    await self._wake.wait()
                await asyncio.sleep(PAUSE)

    async def take_up(self) -> None:
        """Notes what the last server left behind."""
        self._waiting |= dict.fromkeys(await self._store.database.read(search.lagging))

    async def catch_up(self) -> None:
        """Everything that was noted, until nothing is left."""
        while self._waiting:
            session_id = next(iter(self._waiting))
            del self._waiting[session_id]
            try:
                await self._index(session_id)
            except Unavailable:
                self._waiting[session_id] = None
                await asyncio.sleep(NO_ROOM_PAUSE)

    async def _index(self, session_id: str) -> None:
        while True:
            async with self._sessions.courtesy.piece():
                began, appended = clock.monotonic(), self._store.appended
                after, reading = await self._store.database.read(lambda c: search.read_next(c, session_id))
                if reading.until <= after:
                    return
                await self._store.database.write(
                    partial(search.add_documents, session_id=session_id, reading=reading)
                )
                took = clock.monotonic() - began
            if self._store.appended != appended:
                await asyncio.sleep(REST * took)

    def _note(self, session_id: str, snapshot: Snapshot | None) -> None:
        if snapshot is None:
            self._waiting.pop(session_id, None)
            return
        self._waiting[session_id] = None
        self._wake.set()
