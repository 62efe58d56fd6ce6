"""Takes up everything where the last server left it: the same idempotent path however often it runs."""

import structlog

from ..domain.errors import StorageFull
from ..store.records import Records
from .inheritance import hand_down
from .session import Session
from .sessions import Sessions

log = structlog.get_logger()


async def take_up(sessions: Sessions, records: Records) -> None:
    """Adopts what the keepers run, marks what is lost, ends what nobody owns any more."""
    await sessions.store.finish_purges()
    children = sessions.workshop.children
    owners = await records.sessions_of_workers([child.worker_id for child in children.all()])
    for child in children.all():
        if child.worker_id not in owners:
            log.warning("ending a process of no session", worker=child.worker_id, pid=child.pid)
            sessions.end_stray(child)
    for session_id in {*owners.values(), *await records.live_sessions()}:
        session = await sessions.open(session_id)
        session.resume()
        sessions.note(session)
        await _inherit(session, sessions, records)
    sessions.taken_up.set()


async def _inherit(session: Session, sessions: Sessions, records: Records) -> None:
    """The house may be set up otherwise than when the last server ran."""
    try:
        await hand_down([session], sessions.workshop.config, records)
    except StorageFull as full:
        log.warning("settings not renewed", session=session.id, reason=str(full))
