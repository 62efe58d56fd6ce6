"""End sessions whose agents have been idle for longer than the idle timeout."""

import asyncio

import structlog

from .. import clock
from ..domain import commands
from ..domain.errors import Conflict, NotFound, Unavailable
from ..domain.snapshot import Snapshot
from ..domain.states import Activity, SessionStatus
from .session import Session
from .tasks import BackgroundTasks

log = structlog.get_logger()

RETRY_SECONDS = 10.0  # after the end of a session could not be stored, for example on a full disk


class IdleReaper:
    """Has a timer for each session with an agent. All timers start anew with the server."""

    def __init__(self, seconds: float, tasks: BackgroundTasks) -> None:
        self._seconds = seconds
        self._tasks = tasks
        self._active: dict[str, float] = {}  # the time of the last event, by session id
        self._timers: dict[str, asyncio.TimerHandle] = {}

    def restart_timer(self, session: Session) -> None:
        """Count the idle time of a session from now, because something happened in it."""
        if not self._seconds:
            return
        if not may_time_out(session.snapshot):
            self._forget(session.id)
            return
        self._active[session.id] = clock.monotonic()
        if session.id not in self._timers:
            self._set_timer(session, self._seconds)

    def _set_timer(self, session: Session, seconds: float) -> None:
        """Start the timer of a session."""
        loop = asyncio.get_running_loop()
        self._timers[session.id] = loop.call_later(seconds, self._on_timer, session)

    def _on_timer(self, session: Session) -> None:
        """End the session if it was idle for the whole time, else set the timer again."""
        self._timers.pop(session.id, None)
        left = self._active[session.id] + self._seconds - clock.monotonic()
        if left > 0:
            self._set_timer(session, left)
        elif self._tasks.over:
            return
        elif is_idle(session.snapshot):
            self._tasks.create_task(self._end(session), name=f"idle {session.id}")
        else:
            self._active[session.id] = clock.monotonic()
            self._set_timer(session, self._seconds)

    async def _end(self, session: Session) -> None:
        """End the session as completed; try again later if it cannot be stored."""
        log.info("idle for too long", session=session.id, seconds=self._seconds)
        try:
            await session.end(SessionStatus.COMPLETED, commands.IDLE)
        except (Conflict, NotFound):
            return  # ended or purged meanwhile
        except Unavailable:
            if session.id in self._active and session.id not in self._timers:
                self._set_timer(session, RETRY_SECONDS)

    def _forget(self, session_id: str) -> None:
        """Stop the timer of a session."""
        self._active.pop(session_id, None)
        if timer := self._timers.pop(session_id, None):
            timer.cancel()


def may_time_out(snapshot: Snapshot) -> bool:
    """Return whether the session may be ended for being idle: only agents run in it.

    The use of a terminal leaves no events, so a session with a running terminal counts as used.
    """
    living = [worker for worker in snapshot.workers.values() if worker.alive]
    agents = any(worker.type == "agent" for worker in living)
    others = any(worker.type == "terminal" and worker.owner is None for worker in living)
    return snapshot.status is SessionStatus.ACTIVE and agents and not others


def is_idle(snapshot: Snapshot) -> bool:
    """Return whether no turn runs, no agent waits for an answer or works, and the queue is empty."""
    busy = any(each.turn or each.asking for each in snapshot.conversations.values())
    at_work = any(
        worker.alive and worker.is_typed_to and worker.activity in (Activity.ACTIVE, Activity.ASKING)
        for worker in snapshot.workers.values()
    )
    return may_time_out(snapshot) and not busy and not at_work and not snapshot.queue.waiting
