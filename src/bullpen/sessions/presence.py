"""Who is at which session, what is due when the last one leaves (`onLastDisconnect`), and who of them looks.

Two things, and they differ: a viewer is at a session as long as its socket is open, be it a hidden tab or a
program. An onlooker has it before their eyes, and is one only by their own word.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import structlog

from .. import clock
from ..domain.errors import Conflict, NotFound, Unavailable
from ..domain.states import SessionStatus
from ..intervals import intervals
from .session import Session
from .tasks import BackgroundTasks

log = structlog.get_logger()

TRY_AGAIN = 10.0  # seconds after the disk has refused


class AttentiveViewers:
    """Counts whose eyes are on a session, as they say themselves: an open socket says nothing of eyes."""

    def __init__(self) -> None:
        self._count: Counter[str] = Counter()

    @contextmanager
    def one(self, session_id: str) -> Iterator[Callable[[bool], None]]:
        """The word of one viewer: what it said last counts until the block is left."""
        looks = False

        def look(visible: bool) -> None:
            nonlocal looks
            self._count[session_id] += visible - looks
            looks = visible
            if not self._count[session_id]:
                del self._count[session_id]

        try:
            yield look
        finally:
            look(False)

    def are_at(self, session_id: str) -> bool:
        return session_id in self._count


class ViewerPresence:
    """Counts viewers. A `terminate` session ends a grace after its last one left."""

    def __init__(self, tasks: BackgroundTasks) -> None:
        self._tasks = tasks
        self.onlookers = AttentiveViewers()
        self._viewers: Counter[str] = Counter()
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._started = clock.monotonic()

    @contextmanager
    def viewing(self, session: Session) -> Iterator[None]:
        """Somebody is at the session while the block runs."""
        self._viewers[session.id] += 1
        self._cancel(session.id)
        try:
            yield
        finally:
            self._viewers[session.id] -= 1
            if not self._viewers[session.id]:
                del self._viewers[session.id]
                self.check(session)

    def check(self, session: Session) -> None:
        """Starts the grace of a `terminate` session nobody is at."""
        if session.snapshot.on_last_disconnect != "terminate" or self._viewers[session.id]:
            return
        if session.id not in self._timers:
            since_start = clock.monotonic() - self._started
            waits = intervals()
            self._expire_in(session, max(waits.viewer_grace, waits.viewer_grace_after_start - since_start))

    def leave(self, session: Session) -> None:
        """A page said it is going (R12): its socket may take a while to notice."""
        self._cancel(session.id)
        self._expire_in(session, intervals().viewer_grace_after_leave)

    def _expire_in(self, session: Session, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        self._timers[session.id] = loop.call_later(seconds, self._expire, session)

    def _expire(self, session: Session) -> None:
        self._timers.pop(session.id, None)
        if (
            self._viewers[session.id]
            or session.snapshot.on_last_disconnect != "terminate"
            or self._tasks.over
        ):
            return
        self._tasks.create_task(self._end(session), name=f"last disconnect {session.id}")

    async def _end(self, session: Session) -> None:
        log.info("the last viewer left", session=session.id)
        try:
            await session.end(SessionStatus.COMPLETED, "last_disconnect")
        except (Conflict, NotFound):
            return  # somebody ended it a moment ago, or purged it
        except Unavailable:
            if session.id not in self._timers:
                self._expire_in(session, TRY_AGAIN)

    def _cancel(self, session_id: str) -> None:
        if timer := self._timers.pop(session_id, None):
            timer.cancel()
