"""Refuse unanswered permission requests, and give up cancelled turns, after a timeout."""

import asyncio

import structlog

from .. import clock
from ..domain.deadlines import CancelDeadline, Deadline, PermissionDeadline, TimeoutSettings, deadlines
from ..domain.errors import NotFound
from ..domain.snapshot import Snapshot
from ..log.log import Change, SessionLog
from ..workers import acp_orders
from .tasks import BackgroundTasks

log = structlog.get_logger()


class SessionDeadlines:
    """Has a timer for each deadline of one session. The session calls `reconcile` after every change."""

    def __init__(self, session_log: SessionLog, timeouts: TimeoutSettings, tasks: BackgroundTasks) -> None:
        self._log = session_log
        self._timeouts = timeouts
        self._tasks = tasks
        self._timers: dict[Deadline, asyncio.TimerHandle] = {}
        self._has_reconciled = False

    def reconcile(self) -> None:
        """Start timers for new deadlines of the snapshot, and cancel those of deadlines that are gone."""
        current = set(deadlines(self._log.snapshot, self._timeouts))
        for deadline in self._timers.keys() - current:
            self._timers.pop(deadline).cancel()
        for deadline in current - self._timers.keys():
            loop = asyncio.get_running_loop()
            self._timers[deadline] = loop.call_later(self._seconds(deadline), self._on_timer, deadline)
        self._has_reconciled = True

    def _seconds(self, deadline: Deadline) -> float:
        """Return the seconds until a deadline.

        The wall clock counts only for requests made before this server started: it may be set at any time.
        """
        match deadline:
            case PermissionDeadline() if self._has_reconciled:
                return self._timeouts.permission
            case PermissionDeadline():
                left = (deadline.due - clock.now_ms()) / 1000
                return min(max(0.0, left), self._timeouts.permission)
            case CancelDeadline():
                return deadline.seconds

    def _on_timer(self, deadline: Deadline) -> None:
        """Start the task that applies a deadline which has passed."""
        if not self._tasks.over:
            self._tasks.create_task(self._apply(deadline), name=f"deadline {self._log.id}")

    async def _apply(self, deadline: Deadline) -> None:
        """Store what the passed deadline requires."""
        log.info("a deadline has passed", session=self._log.id, deadline=str(deadline))
        try:
            await self._log.change(lambda snapshot: self._decide(snapshot, deadline), patient=True)
        except NotFound:
            return  # the session was purged meanwhile

    def _decide(self, snapshot: Snapshot, deadline: Deadline) -> Change:
        """Refuse the permission request or give up the turn, unless the deadline is gone meanwhile."""
        if deadline not in set(deadlines(snapshot, self._timeouts)):
            return Change()  # answered meanwhile
        match deadline:
            case PermissionDeadline():
                return acp_orders.refuse_permission(snapshot, deadline.permission_id, "timeout").build()
            case CancelDeadline():
                return acp_orders.fail_unresponsive_agent(
                    snapshot, deadline.worker_id, deadline.seconds
                ).build()
