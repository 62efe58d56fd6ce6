"""Takes in a recording another house exported: the same session with the same events; nothing is started."""

import asyncio
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from zipfile import BadZipFile, ZipFile, ZipInfo

from .. import clock
from ..domain import commands
from ..domain.errors import BullpenError, Invalid
from ..domain.events import Event
from ..domain.ids import is_safe_id
from ..domain.snapshot import Snapshot, fold
from ..domain.states import Status
from ..log.entries import storable_entry
from ..log.log import SessionLog
from ..log.recorded import Recorded, RecordedEvents
from ..log.recordings import EVENTS
from ..store.append import Append, Entry
from ..store.importing import import_appends, require_new
from ..workers.workshop import Workshop
from .importing import Taken
from .sessions import Sessions

MOST_BYTES = 8 << 30  # unpacked
MOST_FILES = 100_000
STEP = 1000  # events in one transaction
_MEMBER = re.compile(
    r"metadata\.json|events\.jsonl|images/[0-9a-f]{32}\.[a-z]{3,4}"
    r"|terminals/[0-9A-Za-z_-]{1,64}/[1-9][0-9]{0,8}/[0-9]{20}\.(bin|idx)"
)
_CAST = re.compile(r"terminals/[^/]+\.cast")  # made from the rest


async def import_recording(sessions: Sessions, session_id: str, file: Path, room: Path) -> Taken:
    """`file` is the zip, `room` a directory of ours to unpack it in."""
    await asyncio.to_thread(_unpack, file, room)
    recorded = await asyncio.to_thread(Recorded, room)
    try:
        return await _take(sessions, session_id, recorded, room)
    finally:
        recorded.close()


async def _take(sessions: Sessions, session_id: str, recorded: Recorded, room: Path) -> Taken:
    if damage := recorded.damage():
        raise Invalid(f"the recording is not whole: {damage[0]}")
    if not is_safe_id(session_id) or recorded.metadata.get("id") != session_id:
        raise Invalid(f"this is not the recording of session {session_id}")
    async with sessions.importing:
        story = Story(session_id, recorded.events)
        worker_ids = await asyncio.to_thread(story.worker_ids)
        database = sessions.store.database
        await require_new(database, session_id, worker_ids)
        await asyncio.to_thread(_place_files, sessions.workshop, session_id, worker_ids, room)
        sessions.imported.add(session_id)
        await import_appends(database, session_id, story.appends())
        sessions.workshop.recordings.remember(session_id)
        session = sessions.welcome(await SessionLog.open(sessions.store, session_id))
    return Taken(
        id=session_id,
        session_id=session_id,
        title=session.snapshot.title,
        workers=len(session.snapshot.workers),
        notes=story.notes,
    )


class Story:
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
        for worker_id in snapshot.workers:
            if not is_safe_id(worker_id):
                raise Invalid(f"a worker cannot be called {worker_id[:80]}")
        return list(snapshot.workers)

    def appends(self) -> Iterator[Append]:
        snapshot = Snapshot(id=self._id)
        for append in self._appends():
            snapshot = append.snapshot
            yield append
        if snapshot.status is Status.ACTIVE:
            self.notes.append("it was still going on there: here it is completed")
            yield _end(snapshot)

    def _appends(self) -> Iterator[Append]:
        before = snapshot = Snapshot(id=self._id)
        entries: list[Entry] = []
        for place in range(len(self._events)):
            entry = storable_entry(self._events.event(place))  # a hostile file's too
            snapshot = _folded(snapshot, entry.event)
            entries.append(entry)
            if len(entries) == STEP:
                yield Append(before=before, snapshot=snapshot, entries=entries)
                before, entries = snapshot, []
        if entries:
            yield Append(before=before, snapshot=snapshot, entries=entries)


def _folded(snapshot: Snapshot, event: Event) -> Snapshot:
    try:
        return fold(snapshot, event)
    except BullpenError as error:
        raise Invalid(f"event {event.seq} makes no sense: {error}") from None


def _end(before: Snapshot) -> Append:
    snapshot, entries = before, []
    for draft in commands.end_session(before, Status.COMPLETED, "imported"):
        now = max(clock.now_ms(), snapshot.updated_at)
        event = Event(snapshot.last_seq + 1, now, draft.fact, draft.worker_id, draft.role)
        snapshot = fold(snapshot, event)
        entries.append(storable_entry(event))
    return Append(before=before, snapshot=snapshot, entries=entries)


def _unpack(file: Path, room: Path) -> None:
    """Only what a recording has, under the names it has there."""
    try:
        with ZipFile(file) as archive:
            members = archive.infolist()
            _check(members)
            for member in members:
                if not _CAST.fullmatch(member.filename):
                    _unpack_one(archive, member, room)
    except (BadZipFile, NotImplementedError, RuntimeError, EOFError) as error:
        raise Invalid(f"this is no zip file that can be read: {error}") from None


def _check(members: list[ZipInfo]) -> None:
    names = [member.filename for member in members if not _CAST.fullmatch(member.filename)]
    if EVENTS not in names:
        raise Invalid(f"this is no recording: there is no {EVENTS} in it")
    if strange := [name for name in names if not _MEMBER.fullmatch(name)]:
        raise Invalid(f"a recording has no {strange[0][:80]}")
    if len(members) > MOST_FILES or sum(member.file_size for member in members) > MOST_BYTES:
        raise Invalid(f"a recording has at most {MOST_FILES:,} files and {MOST_BYTES >> 30} GiB")
    if len(set(names)) != len(names):
        raise Invalid("a name is twice in it")


def _unpack_one(archive: ZipFile, member: ZipInfo, room: Path) -> None:
    target = room / member.filename
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with archive.open(member) as source, open(target, "xb", opener=_private) as out:
        left = member.file_size
        while data := source.read(1 << 20):
            left -= len(data)
            if left < 0:
                raise Invalid(f"{member.filename} is longer than it says")
            out.write(data)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, 0o600)


def _place_files(workshop: Workshop, session_id: str, worker_ids: list[str], room: Path) -> None:
    """Before the events: without them nobody finds the files, and a second try replaces them."""
    for worker_id in worker_ids:
        if (room / "terminals" / worker_id).is_dir():
            place = workshop.children.spool(worker_id, 1).parents[1]
            shutil.rmtree(place, ignore_errors=True)
            for run in (room / "terminals" / worker_id).iterdir():
                target = place / run.name / "out"
                target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                shutil.move(run, target)
    if (room / "images").is_dir():
        for image in (room / "images").iterdir():
            workshop.images.put_back(session_id, image.name, image.read_bytes())
