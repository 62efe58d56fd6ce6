"""Write the log of every session to its recording files, in the background.

The log is authoritative. The recorder only remembers which sessions have changed. After a crash or a full
disk, the last complete line of a file tells which events are missing.
"""

import asyncio
from collections.abc import Iterable, Sequence

import structlog

from ..domain.errors import NotFound
from ..domain.snapshot import Snapshot
from ..log.recording_store import RecordingStore
from ..store.events import PAGE_EVENTS, EventStore
from ..store.records import RecordStore
from .sessions import Sessions

log = structlog.get_logger()

PAUSE_SECONDS = 0.1  # between two rounds, so that many events are written at once
MAX_PAGE_BYTES = 4 << 20
MAX_SESSIONS_PER_ROUND = 100  # of the incomplete ones, so that sessions that change now do not wait for all
RETRY_SECONDS = 5.0  # after a recording could not be written, for example on a full disk


class SessionRecorder:
    """Follows all sessions and appends their events to `events.jsonl`, then updates `metadata.json`."""

    def __init__(self, sessions: Sessions, records: RecordStore) -> None:
        self._sessions = sessions
        self._records = records
        self._changed: dict[str, Snapshot | None] = {}  # the newest snapshot; None: read it from the database
        self._has_changes = asyncio.Event()
        self._writing = asyncio.Lock()

    @property
    def _store(self) -> EventStore:
        return self._sessions.store

    @property
    def _recordings(self) -> RecordingStore:
        return self._sessions.services.recordings

    async def run(self) -> None:
        """Complete the recordings that miss events, and then record every change, until the server stops."""
        async with self._sessions.watching(self._on_change):
            incomplete = await self._find_incomplete()
            while True:
                if not incomplete:
                    await self._has_changes.wait()
                self._has_changes.clear()
                for session_id in incomplete[:MAX_SESSIONS_PER_ROUND]:
                    self._changed.setdefault(session_id, None)
                del incomplete[:MAX_SESSIONS_PER_ROUND]
                await self._sessions.throttle.wait_while_typing()
                await self._write_changed()
                await asyncio.sleep(PAUSE_SECONDS)

    async def rebuild(self, session_ids: Sequence[str]) -> int:
        """Write recordings again from the log, and return the number of their events."""
        events = 0
        for session_id in session_ids:
            async with self._writing:
                snapshot = await self._store.load(session_id)
                await asyncio.to_thread(self._recordings.clear, session_id)
                await self._catch_up(snapshot)
                events += snapshot.last_seq
        return events

    def _on_change(self, session_id: str, snapshot: Snapshot | None) -> None:
        """Remember the newest snapshot of a session, for the next round."""
        if snapshot is not None:
            self._changed[session_id] = snapshot
            self._has_changes.set()

    async def _find_incomplete(self) -> list[str]:
        """Return the sessions whose recordings miss events, so that only these are loaded after a start."""
        heads = list((await self._records.last_seqs()).items())
        incomplete: list[str] = []
        for first in range(0, len(heads), MAX_SESSIONS_PER_ROUND):
            async with self._sessions.throttle.step():
                incomplete += await asyncio.to_thread(
                    self._select_incomplete, heads[first : first + MAX_SESSIONS_PER_ROUND]
                )
        return incomplete

    def _select_incomplete(self, heads: Iterable[tuple[str, int]]) -> list[str]:
        """Return the sessions whose files end before the head of their log."""
        recordings = self._recordings
        return [
            session_id
            for session_id, head in heads
            if recordings.last_seq(session_id) != head or recordings.metadata_seq(session_id) != head
        ]

    async def _write_changed(self) -> None:
        """Write the sessions that have changed so far; later changes are written in the next round."""
        changed, self._changed = self._changed, {}
        for session_id, snapshot in changed.items():
            try:
                async with self._writing:
                    await self._catch_up(snapshot or await self._store.load(session_id))
            except NotFound:
                continue  # purged meanwhile
            except OSError as error:
                log.warning("a session could not be recorded", session=session_id, reason=str(error))
                self._changed.setdefault(session_id, snapshot)
                self._has_changes.set()
                await asyncio.sleep(RETRY_SECONDS)

    async def _catch_up(self, snapshot: Snapshot) -> None:
        """Append the events up to this snapshot that the file misses, then write the metadata."""
        done = await asyncio.to_thread(self._recordings.last_seq, snapshot.id)
        if done > snapshot.last_seq:  # an older backup of the database was restored
            await asyncio.to_thread(self._recordings.clear, snapshot.id)
            done = 0
        if not done:
            await asyncio.to_thread(self._recordings.begin, snapshot)
        while done < snapshot.last_seq:
            async with self._sessions.throttle.step():
                done += await self._write_page(snapshot, done)
        if await asyncio.to_thread(self._recordings.metadata_seq, snapshot.id) != snapshot.last_seq:
            await asyncio.to_thread(self._recordings.write_metadata, snapshot)

    async def _write_page(self, snapshot: Snapshot, done: int) -> int:
        """Append a page of the events after `done` to the recording; return how many.

        Raise NotFound if the session was purged meanwhile.
        """
        wires = self._read_tail(snapshot, done) or await self._store.encoded_events(
            snapshot.id, done, snapshot.last_seq + 1, PAGE_EVENTS, max_bytes=MAX_PAGE_BYTES
        )
        if not wires:
            raise NotFound(f"the events of session {snapshot.id} after {done} are gone")
        await asyncio.to_thread(self._recordings.append, snapshot.id, wires)
        return len(wires)

    def _read_tail(self, snapshot: Snapshot, done: int) -> Sequence[bytes]:
        """Return the events after `done` if they are in memory, so that the database need not be read."""
        session = self._sessions.get_open(snapshot.id)
        batch = session.log.recent_batch(done, snapshot.last_seq) if session else None
        return batch.encoded if batch else ()
