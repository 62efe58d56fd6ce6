"""Whether the disk takes more: full from the first refusal until the reserve could be taken again."""

from collections.abc import Callable

from .. import clock
from ..domain.errors import Unavailable
from .ballast import Ballast

PROBE_SECONDS = 0.5
NO_ROOM = "the disk is full; free some space and try again"


class Room:
    """Without a ballast (the disk is a server's) one small write decides."""

    def __init__(self, ballast: Ballast | None, probe: Callable[[], None]) -> None:
        self.full = False
        self.reason = NO_ROOM  # why the last write was refused
        self._ballast = ballast
        self._probe = probe
        self._next_look = 0.0

    def ran_out(self, reason: str = NO_ROOM) -> bool:
        """Note that a write was refused. Return whether the reserve was freed just now: then it may work."""
        self.reason = reason
        first, self.full = not self.full, True
        self._next_look = clock.monotonic() + PROBE_SECONDS
        if self._ballast:
            self._ballast.drop()
        return first and self._ballast is not None

    def look(self) -> None:
        """Finds out, not too often, whether there is room again."""
        if not self.full or clock.monotonic() < self._next_look:
            return
        self._next_look = clock.monotonic() + PROBE_SECONDS
        if self._ballast and not self._ballast.restore():
            return
        try:
            self._probe()
        except Unavailable:
            return
        self.full = False
