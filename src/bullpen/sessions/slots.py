"""How many sessions may have a living agent at once (R36); terminals, diffs and documents are free."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import structlog

from ..domain.errors import TooMany
from ..domain.snapshot import Snapshot

log = structlog.get_logger()


class AgentSlots:
    """One for each session with an agent that is spawning or active; `most` of 0 means any number."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._taken: set[str] = set()
        self._held: Counter[str] = Counter()  # by orders that are not stored yet

    @contextmanager
    def hold(self, session_id: str) -> Iterator[None]:
        """Keeps a place while an agent is being started; TooMany when there is none."""
        used = self._taken | set(self._held)
        if self._most and session_id not in used and len(used) >= self._most:
            raise TooMany(
                f"{self._most} sessions have a living agent, which is the limit; "
                "end one of them and try again, or let more live with AGENT_MAX_SESSIONS"
            )
        self._held[session_id] += 1
        try:
            yield
        finally:
            self._held[session_id] -= 1
            self._held += Counter()  # forgets who holds none

    def update(self, snapshot: Snapshot) -> None:
        """The session is like this now."""
        lives = any(worker.type == "agent" and worker.alive for worker in snapshot.workers.values())
        if lives:
            self._taken.add(snapshot.id)
        elif snapshot.id in self._taken:
            self._taken.discard(snapshot.id)
            log.info("a slot is free", session=snapshot.id, taken=len(self._taken), limit=self._most)
