"""Takes up everything where the last server left it: the same idempotent path however often it runs."""

from collections.abc import Iterable
from contextlib import suppress

import structlog

from ..domain.errors import Conflict, NotFound, Unavailable
from ..store.records import RecordStore
from ..workers.children import ChildHandle, ChildHandles
from .inheritance import hand_down
from .presence import ViewerPresence
from .session import Session
from .sessions import Sessions

log = structlog.get_logger()


async def refuse_strangers(children: ChildHandles, records: RecordStore) -> None:
    """What runs here and is of no session in this database belongs to another one: it is not ours to end."""
    known = await records.known_workers([child.worker_id for child in children.all()])
    strangers = [child for child in children.all() if child.worker_id not in known]
    if living := [child for child in strangers if not child.ended.done()]:
        pids = " ".join(str(child.pid) for child in living)
        raise Conflict(
            f"this database knows nothing of {len(living)} of the programs that run here, which another one "
            f"started (BULLPEN_DATABASE_URL, or a backup was put back): start with that one, or give them up "
            f"first with: kill -9 {pids}"
        )


async def take_up(sessions: Sessions, records: RecordStore) -> None:
    """Adopts what the keepers run, marks what is lost, ends what was purged meanwhile."""
    children = sessions.workshop.children
    ids = [child.worker_id for child in children.all()]
    known = await records.known_workers(ids)  # asked first: what is purged is not known afterwards
    await sessions.purging.finish()
    owners = await records.sessions_of_workers(ids)
    for child in children.all():
        if child.worker_id in known - owners.keys():
            log.warning("ending a process of a purged session", worker=child.worker_id, pid=child.pid)
            sessions.end_stray(child)
    owned = [child for child in children.all() if child.worker_id in owners]
    for session_id in {*owners.values(), *await records.live_sessions()}:
        session = await sessions.open(session_id)
        _end_earlier_runs(session, sessions, [each for each in owned if owners[each.worker_id] == session_id])
        session.resume()
        sessions.note(session)
        await _inherit(session, sessions, records)
    sessions.taken_up.set()


async def await_viewers(sessions: Sessions, records: RecordStore, presence: ViewerPresence) -> None:
    """Who looked at a session while the last server ran has its grace to come back."""
    for session_id in await records.passing_sessions():
        with suppress(NotFound):  # purged a moment ago
            presence.check(await sessions.open(session_id))


def _end_earlier_runs(session: Session, sessions: Sessions, children: Iterable[ChildHandle]) -> None:
    """A worker that failed may have been restarted while its old process took its time to end."""
    for child in children:
        if child.run != session.snapshot.worker(child.worker_id).run:
            log.warning("ending a process of an earlier run", worker=child.worker_id, pid=child.pid)
            sessions.end_earlier(child)


async def _inherit(session: Session, sessions: Sessions, records: RecordStore) -> None:
    """The house may be set up otherwise than when the last server ran."""
    try:
        await hand_down([session], sessions.workshop.config, records)
    except Unavailable as error:
        log.warning("settings not renewed", session=session.id, reason=str(error))
