"""Takes in a recording another house exported: the same session with the same events; nothing is started."""

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
from ..log.recorded import RecordedEvents, RecordingDirectory
from ..store.append import Append, EventEntry
from ..store.importing import import_appends, require_new
from ..store.saved import saved_row
from ..workers.worker_services import WorkerServices
from .importing import ImportedSession
from .sessions import Sessions
from .unpacking import unpack_recording

STEP = 1000  # events in one transaction
STEP_BYTES = 4 << 20  # of their data, after which a transaction takes no further event
MAX_SNAPSHOT = 32 << 20  # bytes of what the events add up to


async def import_recording(sessions: Sessions, session_id: str, file: Path, room: Path) -> ImportedSession:
    """`file` is the zip, `room` a directory of ours to unpack it in."""
    await asyncio.to_thread(unpack_recording, file, room)
    recorded = await asyncio.to_thread(RecordingDirectory, room, whole=True)
    try:
        return await _take(sessions, session_id, recorded, room)
    finally:
        recorded.close()


async def _take(
    sessions: Sessions, session_id: str, recorded: RecordingDirectory, room: Path
) -> ImportedSession:
    if damage := recorded.damage():
        raise Invalid(f"the recording is not whole: {damage[0]}")
    if not is_safe_id(session_id) or recorded.metadata.get("id") != session_id:
        raise Invalid(f"this is not the recording of session {session_id}")
    async with sessions.importing:
        story = RecordingEvents(session_id, recorded.events)
        worker_ids = await asyncio.to_thread(story.worker_ids)
        database = sessions.store.database
        await require_new(database, session_id, worker_ids)
        try:
            await asyncio.to_thread(_place_files, sessions.workshop, session_id, worker_ids, room)
            sessions.imported.add(session_id)
            await import_appends(database, session_id, story.appends())
        except BaseException:
            sessions.imported.discard(session_id)
            await asyncio.to_thread(_remove_files, sessions.workshop, session_id, worker_ids)
            raise
        sessions.workshop.recordings.remember(session_id)
        session = sessions.welcome(await SessionLog.open(sessions.store, session_id))
    return ImportedSession(
        id=session_id,
        session_id=session_id,
        title=session.snapshot.title,
        workers=len(session.snapshot.workers),
        notes=story.notes,
    )


class RecordingEvents:
    """The events of a recording as what a store takes; one that was still going on is ended here."""

    def __init__(self, session_id: str, events: RecordedEvents) -> None:
        self.notes: list[str] = []
        self._id = session_id
        self._events = events

    def worker_ids(self) -> list[str]:
        """Reads all of it once, so that what cannot be folded is refused before anything is stored."""
        snapshot = Snapshot(id=self._id)
        for append in self._appends():
            snapshot = append.snapshot
        for worker in snapshot.workers.values():
            if not is_safe_id(worker.id):
                raise Invalid(f"a worker cannot be called {worker.id[:80]}")
            if worker.run > snapshot.last_seq:  # each run has an event that starts it
                raise Invalid(f"the worker {worker.id} cannot have had {worker.run} runs")
        return list(snapshot.workers)

    def appends(self) -> Iterator[Append]:
        snapshot = Snapshot(id=self._id)
        for append in self._appends():
            snapshot = append.snapshot
            yield append
        if snapshot.status is SessionStatus.ACTIVE:
            self.notes.append("it was still going on there: here it is completed")
            yield _end(snapshot)

    def _appends(self) -> Iterator[Append]:
        before = snapshot = Snapshot(id=self._id)
        entries: list[EventEntry] = []
        size = 0
        for place in range(len(self._events)):
            entry = storable_entry(self._events.event(place))  # a hostile file's too
            snapshot = _folded(snapshot, entry.event)
            entries.append(entry)
            size += len(entry.data)
            if len(entries) == STEP or size > STEP_BYTES:
                _check_size(snapshot)
                yield Append(before=before, snapshot=snapshot, entries=entries)
                before, entries, size = snapshot, [], 0
        if entries:
            _check_size(snapshot)
            yield Append(before=before, snapshot=snapshot, entries=entries)


def _folded(snapshot: Snapshot, event: Event) -> Snapshot:
    try:
        return fold(snapshot, event)
    except BullpenError as error:
        raise Invalid(f"event {event.seq} makes no sense: {error}") from None


def _check_size(snapshot: Snapshot) -> None:
    """Raise Invalid if the session would take too much memory: it is kept there while the session is open."""
    if len(saved_row(snapshot)["body"]) > MAX_SNAPSHOT:
        raise Invalid(
            f"the state of the session has more than {MAX_SNAPSHOT >> 20} MiB at event {snapshot.last_seq}"
        )


def _end(before: Snapshot) -> Append:
    snapshot, entries = before, []
    for draft in commands.end_session(before, SessionStatus.COMPLETED, "imported"):
        now = max(clock.now_ms(), snapshot.updated_at)
        event = Event(snapshot.last_seq + 1, now, draft.fact, draft.worker_id, draft.role)
        snapshot = fold(snapshot, event)
        entries.append(storable_entry(event))
    return Append(before=before, snapshot=snapshot, entries=entries)


def _place_files(workshop: WorkerServices, session_id: str, worker_ids: list[str], room: Path) -> None:
    """Move the files to where the session reads them; the events are stored afterwards."""
    for worker_id in worker_ids:
        if (room / "terminals" / worker_id).is_dir():
            place = _spools(workshop, worker_id)
            shutil.rmtree(place, ignore_errors=True)
            for run in (room / "terminals" / worker_id).iterdir():
                target = place / run.name / "out"
                target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                shutil.move(run, target)
    if (room / "images").is_dir():
        for image in (room / "images").iterdir():
            workshop.images.put_back(session_id, image.name, image.read_bytes())


def _remove_files(workshop: WorkerServices, session_id: str, worker_ids: list[str]) -> None:
    """Remove what `_place_files` has placed of a session that was not imported after all."""
    for worker_id in worker_ids:
        shutil.rmtree(_spools(workshop, worker_id), ignore_errors=True)
    workshop.images.forget(session_id)


def _spools(workshop: WorkerServices, worker_id: str) -> Path:
    """The directory of all runs of a worker."""
    return workshop.children.spool(worker_id, 1).parents[1]
