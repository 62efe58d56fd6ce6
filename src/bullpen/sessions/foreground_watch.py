"""Notify the watchers of a session when another program runs in the foreground of one of its terminals."""

import asyncio

from ..intervals import intervals
from .sessions import Sessions


class ForegroundWatch:
    """Looks at the terminals of all open sessions, again and again: a shell does not say what it starts."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    async def run(self) -> None:
        """Check the terminals until cancelled."""
        while True:
            await asyncio.sleep(intervals().foreground_check)
            for session in self._sessions.list_open():
                if session.read_programs():
                    self._sessions.notify_watchers(session.id, session.snapshot)
