"""Decide when to notify a user of an inbox item by webhook or command.

An item is notified after it was open for `notify_after` seconds, at most once per `notify_pause` for a
session, and not while the session is visible to the user. A permission request is always notified: its
agent waits for it.
"""

import asyncio
from http.client import HTTPException

import structlog

from .. import clock
from ..config import Config
from ..domain.inbox import InboxItem
from .inbox import LiveInbox
from .notifiers import Notifier, create_notifiers
from .presence import ViewerPresence
from .tasks import BackgroundTasks

log = structlog.get_logger()


class Notifications:
    """Has a timer for each new item of the inbox; the timer is cancelled when the item is gone."""

    def __init__(
        self, config: Config, inbox: LiveInbox, presence: ViewerPresence, tasks: BackgroundTasks
    ) -> None:
        self._config = config
        self._inbox = inbox
        self._attentive = presence.attentive
        self._tasks = tasks
        self._notifiers: list[Notifier] = create_notifiers(config)
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._known: set[str] = set()
        self._last_sent: dict[str, float] = {}  # when the last notification of a session was sent
        self._started = clock.now_ms()

    async def run(self) -> None:
        """Follow the inbox until the server stops; return at once if no webhook or command is set."""
        if not self._notifiers:
            return
        async with self._inbox.watching(self._on_inbox):
            self._on_inbox(await self._inbox.items())
            await asyncio.Event().wait()

    def _on_inbox(self, items: list[InboxItem]) -> None:
        """Start timers for new items, and cancel those of items that are gone.

        Items from before the start of this server get no timer.
        """
        waiting = {item.id: item for item in items}
        for id in self._timers.keys() - waiting.keys():
            self._timers.pop(id).cancel()
        for id in waiting.keys() - self._known:
            item = waiting[id]
            # The previous server process has notified, or was about to notify, the older items.
            if item.since >= self._started - self._config.notify_after * 1000:
                self._set_timer(self._config.notify_after, item)
        self._known = set(waiting)

    def _set_timer(self, seconds: float, item: InboxItem) -> None:
        """Start the timer of an inbox item."""
        loop = asyncio.get_running_loop()
        self._timers[item.id] = loop.call_later(seconds, self._on_timer, item)

    def _on_timer(self, item: InboxItem) -> None:
        """Send the notification of an item, unless the session is visible to the user.

        Postpone it if the session was notified just before. A permission is always notified at once.
        """
        self._timers.pop(item.id, None)
        if self._tasks.over:
            return
        if item.kind != "permission":
            if self._attentive.any_at(item.session_id):
                return
            if (rest := self._remaining_pause(item.session_id)) > 0:
                self._set_timer(rest, item)  # by then it may have been answered
                return
        self._last_sent[item.session_id] = clock.monotonic()
        for notifier in self._notifiers:
            self._tasks.create_task(self._send(notifier, item), name=f"notify {item.id}")

    def _remaining_pause(self, session_id: str) -> float:
        """Return the seconds until a session may be notified again."""
        last = self._last_sent.get(session_id)
        return 0 if last is None else last + self._config.notify_pause - clock.monotonic()

    async def _send(self, notifier: Notifier, item: InboxItem) -> None:
        """Send a notification by one notifier; a failure is only logged, not repeated."""
        try:
            await notifier.send(item)
        except (OSError, HTTPException, ValueError) as error:
            log.warning(
                "a notification could not be sent",
                notifier=notifier.name,
                session=item.session_id,
                reason=str(error),
            )
