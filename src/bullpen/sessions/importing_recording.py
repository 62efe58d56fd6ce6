"""Import a recording that another server exported, as a session with the same events. Nothing is started."""

import asyncio
import shutil
from collections.abc import Iterator
from pathlib import Path

from .. import clock
from ..domain import commands
from ..domain.errors import BullpenError, Invalid
from ..domain.events import Event
from ..domain.ids import is_safe_id
from ..domain.snapshot import Snapshot, fold
from ..domain.states import SessionStatus
from ..log.entries import storable_entry
from ..log.log import SessionLog
from ..log.recording_directory import RecordedEvents, RecordingDirectory
from ..store.append import Append, EventEntry
from ..store.importing import import_appends, require_new
from ..store.saved_snapshots import saved_row
from ..workers.worker_services import WorkerServices
from .importing import ImportedSession
from .sessions import Sessions
from .unpacking import unpack_recording

MAX_EVENTS = 1000  # in one transaction
MAX_EVENT_BYTES = 4 << 20  # a transaction with more data takes no further event
MAX_SNAPSHOT_BYTES = 32 << 20


async def import_recording(
    sessions: Sessions, session_id: str, file: Path, directory: Path
) -> ImportedSession:
    """Import the zip file `file`; it is unpacked in the temporary directory `directory`."""
    await asyncio.to_thread(unpack_recording, file, directory)
    recorded = await asyncio.to_thread(RecordingDirectory, directory, strict=True)
    try:
        return await _import_unpacked(sessions, session_id, recorded, directory)
    finally:
        recorded.close()


async def _import_unpacked(
    sessions: Sessions, session_id: str, recorded: RecordingDirectory, directory: Path
) -> ImportedSession:
    """Check and store an unpacked recording; on failure, delete its files again.

    Raise Invalid if it is damaged, or belongs to another session.
    """
    if damage := recorded.describe_damage():
        raise Invalid(f"the recording is not complete: {damage[0]}")
    if not is_safe_id(session_id) or recorded.metadata.get("id") != session_id:
        raise Invalid(f"this is not the recording of session {session_id}")
    async with sessions.import_lock:
        recording = RecordingEvents(session_id, recorded.events)
        worker_ids = await asyncio.to_thread(recording.worker_ids)
        database = sessions.store.database
        await require_new(database, session_id, worker_ids)
        try:
            await asyncio.to_thread(_place_files, sessions.services, session_id, worker_ids, directory)
            sessions.imported_ids.add(session_id)
            await import_appends(database, session_id, recording.transactions())
        except BaseException:
            sessions.imported_ids.discard(session_id)
            await asyncio.to_thread(_remove_files, sessions.services, session_id, worker_ids)
            raise
        sessions.services.recordings.allow(session_id)
        session = sessions.add_new(await SessionLog.open(sessions.store, session_id))
    return ImportedSession(
        id=session_id,
        session_id=session_id,
        title=session.snapshot.title,
        workers=len(session.snapshot.workers),
        notes=recording.notes,
    )


class RecordingEvents:
    """Converts the events of a recording to transactions; a session that is still active is completed."""

    def __init__(self, session_id: str, events: RecordedEvents) -> None:
        self.notes: list[str] = []
        self._id = session_id
        self._events = events

    def worker_ids(self) -> list[str]:
        """Read all events once and return the worker ids. Raise Invalid before anything is stored."""
        snapshot = Snapshot(id=self._id)
        for append in self._transactions():
            snapshot = append.snapshot
        for worker in snapshot.workers.values():
            if not is_safe_id(worker.id):
                raise Invalid(f"a worker cannot be called {worker.id[:80]}")
            if worker.run > snapshot.last_seq:  # each run has an event that starts it
                raise Invalid(f"the worker {worker.id} cannot have had {worker.run} runs")
        return list(snapshot.workers)

    def transactions(self) -> Iterator[Append]:
        """Yield the transactions that store the events."""
        snapshot = Snapshot(id=self._id)
        for append in self._transactions():
            snapshot = append.snapshot
            yield append
        if snapshot.status is SessionStatus.ACTIVE:
            self.notes.append("it was active when it was exported: here it is completed")
            yield _complete(snapshot)

    def _transactions(self) -> Iterator[Append]:
        """Yield the events in transactions of limited size, as recorded."""
        before = snapshot = Snapshot(id=self._id)
        entries: list[EventEntry] = []
        size = 0
        for index in range(len(self._events)):
            entry = storable_entry(self._events.event(index))  # the file may be hostile
            snapshot = _fold_or_refuse(snapshot, entry.event)
            entries.append(entry)
            size += len(entry.data)
            if len(entries) == MAX_EVENTS or size > MAX_EVENT_BYTES:
                _check_size(snapshot)
                yield Append(before=before, snapshot=snapshot, entries=entries)
                before, entries, size = snapshot, [], 0
        if entries:
            _check_size(snapshot)
            yield Append(before=before, snapshot=snapshot, entries=entries)


def _fold_or_refuse(snapshot: Snapshot, event: Event) -> Snapshot:
    """Return the next snapshot. Raise Invalid if the event cannot follow."""
    try:
        return fold(snapshot, event)
    except BullpenError as error:
        raise Invalid(f"event {event.seq} is not possible: {error}") from None


def _check_size(snapshot: Snapshot) -> None:
    """Raise Invalid if the snapshot is too large: it is in memory while the session is open."""
    if len(saved_row(snapshot)["body"]) > MAX_SNAPSHOT_BYTES:
        raise Invalid(
            f"the snapshot has more than {MAX_SNAPSHOT_BYTES >> 20} MiB at event {snapshot.last_seq}"
        )


def _complete(before: Snapshot) -> Append:
    """Return the transaction that ends an active session."""
    snapshot, entries = before, []
    for draft in commands.end_session(before, SessionStatus.COMPLETED, "imported"):
        now = max(clock.now_ms(), snapshot.updated_at)
        event = Event(snapshot.last_seq + 1, now, draft.fact, draft.worker_id, draft.role)
        snapshot = fold(snapshot, event)
        entries.append(storable_entry(event))
    return Append(before=before, snapshot=snapshot, entries=entries)


def _place_files(services: WorkerServices, session_id: str, worker_ids: list[str], directory: Path) -> None:
    """Move the unpacked files to the directories of recordings and images."""
    for worker_id in worker_ids:
        if (directory / "terminals" / worker_id).is_dir():
            index = _recordings_directory(services, worker_id)
            shutil.rmtree(index, ignore_errors=True)
            for run in (directory / "terminals" / worker_id).iterdir():
                target = index / run.name / "out"
                target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                shutil.move(run, target)
    if (directory / "images").is_dir():
        for image in (directory / "images").iterdir():
            services.images.restore(session_id, image.name, image.read_bytes())


def _remove_files(services: WorkerServices, session_id: str, worker_ids: list[str]) -> None:
    """Delete the files that `_place_files` has moved, because the import failed."""
    for worker_id in worker_ids:
        shutil.rmtree(_recordings_directory(services, worker_id), ignore_errors=True)
    services.images.remove_all(session_id)


def _recordings_directory(services: WorkerServices, worker_id: str) -> Path:
    """Return the directory with the recordings of all runs of a worker."""
    return services.children.spool(worker_id, 1).parents[1]
