"""Limit how many sessions may have a running agent at the same time; other workers are not limited."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import structlog

from ..domain.errors import TooMany
from ..domain.snapshot import Snapshot

log = structlog.get_logger()


class AgentSlots:
    """Counts the sessions with an agent that is spawning or active. A `limit` of 0 means no limit."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._used: set[str] = set()
        self._held: Counter[str] = Counter()  # by requests that are not stored yet

    @contextmanager
    def hold(self, session_id: str) -> Iterator[None]:
        """Hold a slot while an agent is being started. Raise TooMany if no slot is free."""
        used = self._used | set(self._held)
        if self._limit and session_id not in used and len(used) >= self._limit:
            count = "1 session has" if self._limit == 1 else f"{self._limit} sessions have"
            raise TooMany(
                f"{count} a running agent, which is the limit; "
                "end one of them and try again, or raise the setting max_sessions (AGENT_MAX_SESSIONS)"
            ).with_details({"limit": self._limit, "setting": "max_sessions"})
        self._held[session_id] += 1
        try:
            yield
        finally:
            self._held[session_id] -= 1
            self._held += Counter()  # removes counts of zero

    def update(self, snapshot: Snapshot) -> None:
        """Take or free the slot of a session according to its latest snapshot."""
        has_agent = any(worker.type == "agent" and worker.alive for worker in snapshot.workers.values())
        if has_agent:
            self._used.add(snapshot.id)
        elif snapshot.id in self._used:
            self._used.discard(snapshot.id)
            log.info("a slot is free", session=snapshot.id, taken=len(self._used), limit=self._limit)
