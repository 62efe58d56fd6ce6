"""Continue all sessions and workers after a start of the server; every step may run more than once."""

from collections.abc import Iterable
from contextlib import suppress

import structlog

from ..domain.errors import Conflict, NotFound, Unavailable
from ..store.records import RecordStore
from ..workers.children import ChildHandle, ChildHandles
from .presence import ViewerPresence
from .queue_inheritance import apply_inherited_settings
from .session import Session
from .sessions import Sessions

log = structlog.get_logger()


async def refuse_foreign_children(children: ChildHandles, records: RecordStore) -> None:
    """Raise Conflict if programs run here that belong to no session in this database.

    They belong to another database, so this server must not end them.
    """
    known = await records.known_workers([child.worker_id for child in children.all()])
    foreign = [child for child in children.all() if child.worker_id not in known]
    if running := [child for child in foreign if not child.ended.done()]:
        pids = " ".join(str(child.pid) for child in running)
        raise Conflict(
            f"this database has no record of {len(running)} of the programs that run here: they were started "
            f"with another database (BULLPEN_DATABASE_URL), or before a backup was restored. Start the "
            f"server with that database, or end the programs first with: kill -9 {pids}"
        )


async def resume_sessions(sessions: Sessions, records: RecordStore) -> None:
    """Continue all workers, mark lost ones as failed, and end processes of purged sessions."""
    children = sessions.services.children
    ids = [child.worker_id for child in children.all()]
    known = await records.known_workers(ids)  # read first: `finish` deletes the rows of purged sessions
    await sessions.purger.finish()
    owners = await records.sessions_of_workers(ids)
    for child in children.all():
        if child.worker_id in known - owners.keys():
            log.warning("ending a process of a purged session", worker=child.worker_id, pid=child.pid)
            sessions.end_stray_child(child)
    owned = [child for child in children.all() if child.worker_id in owners]
    for session_id in {*owners.values(), *await records.live_sessions()}:
        session = await sessions.open(session_id)
        _end_earlier_runs(session, sessions, [each for each in owned if owners[each.worker_id] == session_id])
        session.resume()
        sessions.restart_idle_timer(session)
        await _inherit(session, sessions, records)
    sessions.workers_resumed.set()


async def start_disconnect_timers(sessions: Sessions, records: RecordStore, presence: ViewerPresence) -> None:
    """Start the timers of sessions that end when their last viewer does not reconnect in time."""
    for session_id in await records.sessions_ending_with_last_viewer():
        with suppress(NotFound):  # purged a moment ago
            presence.schedule_end(await sessions.open(session_id))


def _end_earlier_runs(session: Session, sessions: Sessions, children: Iterable[ChildHandle]) -> None:
    """End processes of earlier runs: a worker may be restarted while its failed run is still ending."""
    for child in children:
        if child.run != session.snapshot.worker(child.worker_id).run:
            log.warning("ending a process of an earlier run", worker=child.worker_id, pid=child.pid)
            sessions.end_earlier_run(child)


async def _inherit(session: Session, sessions: Sessions, records: RecordStore) -> None:
    """Apply the inherited settings: those of the server may have changed since its last start."""
    try:
        await apply_inherited_settings([session], sessions.services.config, records)
    except Unavailable as error:
        log.warning("inherited settings could not be stored", session=session.id, reason=str(error))
