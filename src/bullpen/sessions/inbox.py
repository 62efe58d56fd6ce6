"""The inbox: what waits for a person over all sessions, and everyone who wants to know when it changes."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from ..domain.inbox import InboxItem, inbox_signature, open_items, sort_by_urgency
from ..domain.snapshot import Snapshot
from ..store.answers import KeptAnswer, answered
from ..store.unseen import mark_seen, read_unseen
from .sessions import Sessions

Watcher = Callable[[list[InboxItem]], None]

PAUSE = 0.1  # a burst of changes is looked at once


class LiveInbox:
    """Open questions come from the snapshots of living sessions, the rest from what is stored."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions
        self._database = sessions.store.database
        self._signatures: dict[str, tuple[Any, ...]] = {}
        self._watchers: set[Watcher] = set()
        self._changed = asyncio.Event()

    async def items(self) -> list[InboxItem]:
        """Everything, the most urgent first. A question can only be open where something runs."""
        await self._sessions.taken_up.wait()
        unseen = await self._database.read(read_unseen)
        open = [item for session in self._sessions.in_memory() for item in open_items(session.snapshot)]
        return sort_by_urgency([*open, *unseen])

    async def mark_seen(
        self, session_id: str, seq: int | None = None, answer: KeptAnswer[None] | None = None
    ) -> None:
        """What happened in a session up to an event needs nobody's eyes any more."""
        await self._database.write(answered(lambda c: mark_seen(c, session_id, seq), answer))
        self._changed.set()

    @asynccontextmanager
    async def watching(self, changed: Watcher) -> AsyncIterator[None]:
        """Calls `changed` with the whole inbox whenever it is another, while the block runs."""
        self._watchers.add(changed)
        try:
            yield
        finally:
            self._watchers.discard(changed)

    async def follow(self) -> None:
        """Looks again after every change it may depend on, for as long as the house stands."""
        async with self._sessions.watching(self._note):
            told = None
            while True:
                self._changed.clear()
                items = await self.items()
                if items != told:
                    told = items
                    for changed in tuple(self._watchers):
                        changed(items)
                await self._changed.wait()
                await asyncio.sleep(PAUSE)

    def _note(self, session_id: str, snapshot: Snapshot | None) -> None:
        new = None if snapshot is None else inbox_signature(snapshot)
        if new != self._signatures.get(session_id):
            self._changed.set()
        if new is None or snapshot is None or not snapshot.live:
            self._signatures.pop(session_id, None)
        else:
            self._signatures[session_id] = new
