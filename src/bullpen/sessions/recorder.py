"""The recorder: every session's log as a file, written behind it by one follower that never slows it.

The log is the truth. The recorder only remembers which sessions have moved; what is missing in a file, after
a crash or a full disk, is known by the number of its last whole line.
"""

import asyncio
from collections.abc import Iterable, Sequence

import structlog

from ..domain.errors import NotFound
from ..domain.snapshot import Snapshot
from ..log.recordings import RecordingStore
from ..store.events import PAGE, EventStore
from ..store.records import RecordStore
from .sessions import Sessions

log = structlog.get_logger()

PACE = 0.1  # seconds between two rounds: a flood is written in few pieces
PAGE_BYTES = 4 << 20
PORTION = 100  # of many sessions at a time: who moves now does not wait for all that were left behind
TRY_AGAIN = 5.0  # seconds after the disk has refused


class SessionRecorder:
    """Follows all sessions; `rebuild` writes a recording anew from the log."""

    def __init__(self, sessions: Sessions, records: RecordStore) -> None:
        self._sessions = sessions
        self._records = records
        self._moved: dict[str, Snapshot | None] = {}  # the newest; None: whatever is stored
        self._news = asyncio.Event()
        self._writing = asyncio.Lock()

    @property
    def _store(self) -> EventStore:
        return self._sessions.store

    @property
    def _recordings(self) -> RecordingStore:
        return self._sessions.workshop.recordings

    async def run(self) -> None:
        """First what happened while nobody wrote, then whatever happens."""
        async with self._sessions.watching(self._note):
            behind = await self._left_behind()
            while True:
                if not behind:
                    await self._news.wait()
                self._news.clear()
                for session_id in behind[:PORTION]:
                    self._moved.setdefault(session_id, None)
                del behind[:PORTION]
                await self._sessions.courtesy.pause()
                await self._write_moved()
                await asyncio.sleep(PACE)

    async def rebuild(self, session_ids: Sequence[str]) -> int:
        """Writes recordings anew; returns how many events they hold."""
        events = 0
        for session_id in session_ids:
            async with self._writing:
                snapshot = await self._store.load(session_id)
                await asyncio.to_thread(self._recordings.empty, session_id)
                await self._catch_up(snapshot)
                events += snapshot.last_seq
        return events

    def _note(self, session_id: str, snapshot: Snapshot | None) -> None:
        if snapshot is not None:
            self._moved[session_id] = snapshot
            self._news.set()

    async def _left_behind(self) -> list[str]:
        """The sessions whose files do not hold everything: only they are opened at a start."""
        heads = list((await self._records.heads()).items())
        behind: list[str] = []
        for first in range(0, len(heads), PORTION):
            async with self._sessions.courtesy.piece():
                behind += await asyncio.to_thread(self._incomplete, heads[first : first + PORTION])
        return behind

    def _incomplete(self, heads: Iterable[tuple[str, int]]) -> list[str]:
        recordings = self._recordings
        return [
            session_id
            for session_id, head in heads
            if recordings.last_seq(session_id) != head or recordings.described(session_id) != head
        ]

    async def _write_moved(self) -> None:
        """Those that have moved by now; who goes on moving meanwhile is written in the next round."""
        moved, self._moved = self._moved, {}
        for session_id, snapshot in moved.items():
            try:
                async with self._writing:
                    await self._catch_up(snapshot or await self._store.load(session_id))
            except NotFound:
                continue  # purged meanwhile
            except OSError as error:
                log.warning("not recorded", session=session_id, reason=str(error))
                self._moved.setdefault(session_id, snapshot)
                self._news.set()
                await asyncio.sleep(TRY_AGAIN)

    async def _catch_up(self, snapshot: Snapshot) -> None:
        """Writes what the file lacks of the events up to this snapshot, then what they add up to."""
        done = await asyncio.to_thread(self._recordings.last_seq, snapshot.id)
        if done > snapshot.last_seq:  # of another log with this id: a database that was put back
            await asyncio.to_thread(self._recordings.empty, snapshot.id)
            done = 0
        while done < snapshot.last_seq:
            async with self._sessions.courtesy.piece():
                done += await self._write_page(snapshot, done)
        if await asyncio.to_thread(self._recordings.described, snapshot.id) != snapshot.last_seq:
            await asyncio.to_thread(self._recordings.describe, snapshot)

    async def _write_page(self, snapshot: Snapshot, done: int) -> int:
        """Some of the events that follow; how many."""
        wires = self._at_hand(snapshot, done) or await self._store.wire(
            snapshot.id, done, snapshot.last_seq + 1, PAGE, most_bytes=PAGE_BYTES
        )
        if not wires:
            raise NotFound(f"the events of session {snapshot.id} after {done} are gone")
        await asyncio.to_thread(self._recordings.append, snapshot.id, wires)
        return len(wires)

    def _at_hand(self, snapshot: Snapshot, done: int) -> Sequence[bytes]:
        """Those that are in memory, for viewers: the database need not be asked for them."""
        session = self._sessions.at_hand(snapshot.id)
        batch = session.log.recent(done, snapshot.last_seq) if session else None
        return batch.encoded if batch else ()
