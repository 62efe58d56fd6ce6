"""Tells a person who looks elsewhere that something waits: who is told of what, and when.

After a while unanswered, at most once a minute for a session, and not while somebody looks at the session.
What falls into the pause is told after it. Approvals are always told: an agent stands still until they
are given.
"""

import asyncio
from http.client import HTTPException

import structlog

from .. import clock
from ..config import Config
from ..domain.inbox import InboxItem
from .inbox import LiveInbox
from .notifiers import Notifier, messengers
from .presence import ViewerPresence
from .tasks import BackgroundTasks

log = structlog.get_logger()


class Notifications:
    """One timer for each thing that waits; what is gone from the inbox is not told any more."""

    def __init__(
        self, config: Config, inbox: LiveInbox, presence: ViewerPresence, tasks: BackgroundTasks
    ) -> None:
        self._config = config
        self._inbox = inbox
        self._onlookers = presence.onlookers
        self._tasks = tasks
        self._messengers: list[Notifier] = messengers(config)
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._known: set[str] = set()
        self._told: dict[str, float] = {}  # when a session was last told of
        self._started = clock.now_ms()

    async def follow(self) -> None:
        """For as long as the house stands; nothing to do where nobody can be told."""
        if not self._messengers:
            return
        async with self._inbox.watching(self._note):
            self._note(await self._inbox.items())
            await asyncio.Event().wait()

    def _note(self, items: list[InboxItem]) -> None:
        waiting = {item.id: item for item in items}
        for id in self._timers.keys() - waiting.keys():
            self._timers.pop(id).cancel()
        for id in waiting.keys() - self._known:
            item = waiting[id]
            # What waited before we started was told by the server before us, or was about to be.
            if item.since >= self._started - self._config.notify_after * 1000:
                self._due_in(self._config.notify_after, item)
        self._known = set(waiting)

    def _due_in(self, seconds: float, item: InboxItem) -> None:
        loop = asyncio.get_running_loop()
        self._timers[item.id] = loop.call_later(seconds, self._due, item)

    def _due(self, item: InboxItem) -> None:
        self._timers.pop(item.id, None)
        if self._tasks.over:
            return
        if item.kind != "permission":
            if self._onlookers.are_at(item.session_id):
                return
            if (rest := self._pause_left(item.session_id)) > 0:
                self._due_in(rest, item)  # by then it may have been answered
                return
        self._told[item.session_id] = clock.monotonic()
        for messenger in self._messengers:
            self._tasks.create_task(self._tell(messenger, item), name=f"notify {item.id}")

    def _pause_left(self, session_id: str) -> float:
        last = self._told.get(session_id)
        return 0 if last is None else last + self._config.notify_pause - clock.monotonic()

    async def _tell(self, messenger: Notifier, item: InboxItem) -> None:
        try:
            await messenger.tell(item)
        except (OSError, HTTPException, ValueError) as error:
            log.warning("nobody was notified", how=messenger.name, session=item.session_id, reason=str(error))
