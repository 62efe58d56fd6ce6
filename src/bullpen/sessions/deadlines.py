"""The timers of one session: each deadline is met once, decided on the snapshot of that moment."""

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
    """`follow` after every change: what is waited for follows from what is stored."""

    def __init__(self, session_log: SessionLog, patience: TimeoutSettings, tasks: BackgroundTasks) -> None:
        self._log = session_log
        self._patience = patience
        self._tasks = tasks
        self._timers: dict[Deadline, asyncio.TimerHandle] = {}
        self._following = False

    def follow(self) -> None:
        wanted = set(deadlines(self._log.snapshot, self._patience))
        for deadline in self._timers.keys() - wanted:
            self._timers.pop(deadline).cancel()
        for deadline in wanted - self._timers.keys():
            loop = asyncio.get_running_loop()
            self._timers[deadline] = loop.call_later(self._seconds(deadline), self._meet, deadline)
        self._following = True

    def _seconds(self, deadline: Deadline) -> float:
        """From now: only of what was asked before we followed the clock says how much has passed."""
        match deadline:
            case PermissionDeadline() if self._following:
                return self._patience.permission
            case PermissionDeadline():
                left = (deadline.due - clock.now_ms()) / 1000
                return min(max(0.0, left), self._patience.permission)
            case CancelDeadline():
                return deadline.seconds

    def _meet(self, deadline: Deadline) -> None:
        if not self._tasks.over:
            self._tasks.create_task(self._act(deadline), name=f"deadline {self._log.id}")

    async def _act(self, deadline: Deadline) -> None:
        log.info("a deadline has passed", session=self._log.id, deadline=str(deadline))
        try:
            await self._log.change(lambda snapshot: self._decide(snapshot, deadline), patient=True)
        except NotFound:
            return  # the session was purged a moment ago

    def _decide(self, snapshot: Snapshot, deadline: Deadline) -> Change:
        if deadline not in set(deadlines(snapshot, self._patience)):
            return Change()  # it was answered a moment ago
        match deadline:
            case PermissionDeadline():
                return acp_orders.refuse_permission(snapshot, deadline.permission_id, "timeout").change()
            case CancelDeadline():
                return acp_orders.give_up(snapshot, deadline.worker_id, deadline.seconds).change()
