"""The inbox: what waits for the user in all sessions, and the watchers to notify when it changes."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from ..domain.attention import Attention, attention_of
from ..domain.inbox import InboxItem, inbox_signature, open_items, sort_by_urgency
from ..domain.sandbox_refusals import mark_refusals_seen
from ..domain.snapshot import Snapshot
from ..log.log import Change
from ..store.answers import PendingAnswer, with_answer
from ..store.unseen_results import mark_seen, read_unseen
from .sessions import Sessions

Watcher = Callable[[list[InboxItem]], None]

PAUSE_SECONDS = 0.1  # so that a burst of changes is one notification


class LiveInbox:
    """Collects open questions from the snapshots of open sessions, and all other items from the database."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions
        self._database = sessions.store.database
        self._unseen: dict[str, list[InboxItem]] = {}  # by session, as last read
        self._signatures: dict[str, tuple[Any, ...]] = {}
        self._watchers: set[Watcher] = set()
        self._changed = asyncio.Event()

    async def items(self) -> list[InboxItem]:
        """Return all items, the most urgent first.

        Only open sessions are searched for questions: a session with an open question has a running worker.
        """
        await self._sessions.workers_resumed.wait()
        unseen = await self.read_unseen()
        open = [item for session in self._sessions.list_open() for item in open_items(session.snapshot)]
        return sort_by_urgency([*(item for item in open if not self._is_allowed(item)), *unseen])

    async def read_unseen(self) -> list[InboxItem]:
        """Return the results that no user has seen; `attention` uses them from now on."""
        unseen = await self._database.read(read_unseen)
        self._unseen = {}
        for item in unseen:
            self._unseen.setdefault(item.session_id, []).append(item)
        return unseen

    def attention(self, snapshot: Snapshot) -> Attention:
        """Return what a session needs, by its own snapshot if it is open, and by the results last read."""
        unseen = self._unseen.get(snapshot.id, ())
        open = self._sessions.get_open(snapshot.id)  # every session with a running program is open
        if open is None:
            return attention_of(snapshot, unseen)
        return attention_of(open.snapshot, unseen, list(open.programs.values()))

    async def mark_seen(
        self, session_id: str, seq: int | None = None, answer: PendingAnswer[None] | None = None
    ) -> None:
        """Mark everything in a session up to event `seq` (default: all) as seen by the user.

        A refusal of the sandbox is marked only by its own `seq`: who looks at the session has not decided it.
        """
        if session := self._sessions.get_open(session_id):
            await session.log.change(
                lambda snapshot: Change(drafts=mark_refusals_seen(snapshot.refusals, seq))
            )
        await self._database.write(with_answer(lambda c: mark_seen(c, session_id, seq), answer))
        self._changed.set()

    def refresh(self) -> None:
        """Collect the items again, because something beside the sessions has changed."""
        self._changed.set()

    @asynccontextmanager
    async def watching(self, changed: Watcher) -> AsyncIterator[None]:
        """Call `changed` with the whole inbox after each change of it, while the block runs."""
        self._watchers.add(changed)
        try:
            yield
        finally:
            self._watchers.discard(changed)

    async def run(self) -> None:
        """Update the inbox after every change of a session that may affect it, until the server stops."""
        async with self._sessions.watching(self._on_change):
            previous = None
            while True:
                self._changed.clear()
                items = await self.items()
                if items != previous:
                    previous = items
                    for changed in tuple(self._watchers):
                        changed(items)
                await self._changed.wait()
                await asyncio.sleep(PAUSE_SECONDS)

    def _is_allowed(self, item: InboxItem) -> bool:
        """Return whether a user has meanwhile allowed what the sandbox refused."""
        grants = self._sessions.services.sandbox.grants
        if grants is None or item.refused is None:
            return False
        kind, target = item.refused
        return grants.covers(kind, target, item.repo_id)

    def _on_change(self, session_id: str, snapshot: Snapshot | None) -> None:
        """Wake `run` if the change may affect the inbox."""
        new = None if snapshot is None else inbox_signature(snapshot)
        if new != self._signatures.get(session_id):
            self._changed.set()
        if new is None or snapshot is None or not snapshot.live:
            self._signatures.pop(session_id, None)
        else:
            self._signatures[session_id] = new
