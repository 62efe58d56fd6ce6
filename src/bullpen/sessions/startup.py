"""Takes up everything where the last server left it: the same idempotent path however often it runs."""

from collections.abc import Iterable
from contextlib import suppress

import structlog

from ..domain.errors import NotFound, StorageFull
from ..store.records import Records
from ..workers.children import Child
from .inheritance import hand_down
from .presence import Presence
from .session import Session
from .sessions import Sessions

log = structlog.get_logger()


async def take_up(sessions: Sessions, records: Records) -> None:
    """Adopts what the keepers run, marks what is lost, ends what nobody owns any more."""
    await sessions.purging.finish()
    children = sessions.workshop.children
    owners = await records.sessions_of_workers([child.worker_id for child in children.all()])
    for child in children.all():
        if child.worker_id not in owners:
            log.warning("ending a process of no session", worker=child.worker_id, pid=child.pid)
            sessions.end_stray(child)
    owned = [child for child in children.all() if child.worker_id in owners]
    for session_id in {*owners.values(), *await records.live_sessions()}:
        session = await sessions.open(session_id)
        _end_earlier_runs(session, sessions, [each for each in owned if owners[each.worker_id] == session_id])
        session.resume()
        sessions.note(session)
        await _inherit(session, sessions, records)
    sessions.taken_up.set()


async def await_viewers(sessions: Sessions, records: Records, presence: Presence) -> None:
    """Who looked at a session while the last server ran has its grace to come back."""
    for session_id in await records.passing_sessions():
        with suppress(NotFound):  # purged a moment ago
            presence.check(await sessions.open(session_id))


def _end_earlier_runs(session: Session, sessions: Sessions, children: Iterable[Child]) -> None:
    """A worker that failed may have been restarted while its old process took its time to end."""
    for child in children:
        if child.run != session.snapshot.worker(child.worker_id).run:
            log.warning("ending a process of an earlier run", worker=child.worker_id, pid=child.pid)
            sessions.end_earlier(child)


async def _inherit(session: Session, sessions: Sessions, records: Records) -> None:
    """The house may be set up otherwise than when the last server ran."""
    try:
        await hand_down([session], sessions.workshop.config, records)
    except StorageFull as full:
        log.warning("settings not renewed", session=session.id, reason=str(full))
