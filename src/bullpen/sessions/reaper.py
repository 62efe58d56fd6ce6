"""Ends sessions whose agents have had nothing to do for long (R38-R40)."""

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

TRY_AGAIN = 10.0  # seconds after the disk has refused


class IdleReaper:
    """One timer for each session with an agent; it counts anew after a start of the server."""

    def __init__(self, seconds: float, tasks: BackgroundTasks) -> None:
        self._seconds = seconds
        self._tasks = tasks
        self._active: dict[str, float] = {}  # when something last happened
        self._timers: dict[str, asyncio.TimerHandle] = {}

    def note(self, session: Session) -> None:
        """Something happened in the session."""
        if not self._seconds:
            return
        if not may_time_out(session.snapshot):
            self._forget(session.id)
            return
        self._active[session.id] = clock.monotonic()
        if session.id not in self._timers:
            self._arm(session, self._seconds)

    def _arm(self, session: Session, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        self._timers[session.id] = loop.call_later(seconds, self._look, session)

    def _look(self, session: Session) -> None:
        self._timers.pop(session.id, None)
        left = self._active[session.id] + self._seconds - clock.monotonic()
        if left > 0:
            self._arm(session, left)
        elif self._tasks.over:
            return
        elif is_idle(session.snapshot):
            self._tasks.create_task(self._end(session), name=f"idle {session.id}")
        else:
            self._active[session.id] = clock.monotonic()
            self._arm(session, self._seconds)

    async def _end(self, session: Session) -> None:
        log.info("idle for too long", session=session.id, seconds=self._seconds)
        try:
            await session.end(SessionStatus.COMPLETED, commands.IDLE)
        except (Conflict, NotFound):
            return  # somebody ended it a moment ago, or purged it
        except Unavailable:
            if session.id in self._active and session.id not in self._timers:
                self._arm(session, TRY_AGAIN)

    def _forget(self, session_id: str) -> None:
        self._active.pop(session_id, None)
        if timer := self._timers.pop(session_id, None):
            timer.cancel()


def may_time_out(snapshot: Snapshot) -> bool:
    """Whether agents are all that lives in the session: a person in a terminal leaves no events."""
    living = [worker for worker in snapshot.workers.values() if worker.alive]
    agents = any(worker.type == "agent" for worker in living)
    others = any(worker.type == "terminal" and worker.command is None for worker in living)
    return snapshot.status is SessionStatus.ACTIVE and agents and not others


def is_idle(snapshot: Snapshot) -> bool:
    """Whether nothing waits: neither a turn, nor a question, nor a message, nor what somebody typed."""
    busy = any(each.turn or each.asking for each in snapshot.conversations.values())
    at_work = any(
        worker.alive and worker.is_typed_to and worker.activity in (Activity.ACTIVE, Activity.ASKING)
        for worker in snapshot.workers.values()
    )
    return may_time_out(snapshot) and not busy and not at_work and not snapshot.queue.waiting
