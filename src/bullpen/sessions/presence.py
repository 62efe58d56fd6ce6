"""Count the viewers of each session, and end a session after its last viewer left (`onLastDisconnect`).

A viewer is connected while its socket is open; a hidden tab and a program count too. A viewer is attentive
while its client reports that the session is visible to the user.
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

RETRY_SECONDS = 10.0  # after the end of a session could not be stored, for example on a full disk


class AttentiveViewers:
    """Counts the viewers whose clients report that a session is visible to the user."""

    def __init__(self) -> None:
        self._count: Counter[str] = Counter()

    @contextmanager
    def track(self, session_id: str) -> Iterator[Callable[[bool], None]]:
        """Track one viewer while the block runs; yield a function that reports whether it is attentive."""
        is_visible = False

        def report(visible: bool) -> None:
            nonlocal is_visible
            self._count[session_id] += visible - is_visible
            is_visible = visible
            if not self._count[session_id]:
                del self._count[session_id]

        try:
            yield report
        finally:
            report(False)

    def any_at(self, session_id: str) -> bool:
        """Return whether a session is visible to the user in at least one client."""
        return session_id in self._count


class ViewerPresence:
    """Counts viewers, and ends a `terminate` session some seconds after its last viewer left."""

    def __init__(self, tasks: BackgroundTasks) -> None:
        self._tasks = tasks
        self.attentive = AttentiveViewers()
        self._viewers: Counter[str] = Counter()
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._started = clock.monotonic()

    @contextmanager
    def viewing(self, session: Session) -> Iterator[None]:
        """Count one viewer of the session while the block runs."""
        self._viewers[session.id] += 1
        self._cancel_timer(session.id)
        try:
            yield
        finally:
            self._viewers[session.id] -= 1
            if not self._viewers[session.id]:
                del self._viewers[session.id]
                self.schedule_end(session)

    def schedule_end(self, session: Session) -> None:
        """Start the timer that ends a `terminate` session if it has no viewer."""
        if session.snapshot.on_last_disconnect != "terminate" or self._viewers[session.id]:
            return
        if session.id not in self._timers:
            since_start = clock.monotonic() - self._started
            waits = intervals()
            self._set_timer(session, max(waits.viewer_grace, waits.viewer_grace_after_start - since_start))

    def schedule_early_end(self, session: Session) -> None:
        """Start the timer at once: a page reported that it is being closed, before its socket is."""
        self._cancel_timer(session.id)
        self._set_timer(session, intervals().viewer_grace_after_leave)

    def _set_timer(self, session: Session, seconds: float) -> None:
        """Start the timer that may end a session."""
        loop = asyncio.get_running_loop()
        self._timers[session.id] = loop.call_later(seconds, self._on_timer, session)

    def _on_timer(self, session: Session) -> None:
        """End the session, unless a viewer connected or the setting changed meanwhile."""
        self._timers.pop(session.id, None)
        if (
            self._viewers[session.id]
            or session.snapshot.on_last_disconnect != "terminate"
            or self._tasks.over
        ):
            return
        self._tasks.create_task(self._end(session), name=f"last disconnect {session.id}")

    async def _end(self, session: Session) -> None:
        """End the session as completed; try again later if it cannot be stored."""
        log.info("the last viewer left", session=session.id)
        try:
            await session.end(SessionStatus.COMPLETED, "last_disconnect")
        except (Conflict, NotFound):
            return  # ended or purged meanwhile
        except Unavailable:
            if session.id not in self._timers:
                self._set_timer(session, RETRY_SECONDS)

    def _cancel_timer(self, session_id: str) -> None:
        """Stop the timer of a session, if one runs."""
        if timer := self._timers.pop(session_id, None):
            timer.cancel()
