"""Track whether the database accepts writes: not after a refusal, and again once a write succeeds.

A refusal is a full disk (StorageFull) or an unreachable server (DatabaseUnreachable). A lock that another
process holds is not one.
"""

from collections.abc import Callable

import structlog

from .. import clock
from ..domain.errors import StorageFull, Unavailable
from .ballast import Ballast

log = structlog.get_logger()

PROBE_SECONDS = 0.5


class WriteAvailability:
    """Whether the database accepts writes.

    With a ballast, the disk counts as full until the ballast fits on it again. `probe` attempts a write.
    """

    def __init__(self, ballast: Ballast | None, probe: Callable[[], None]) -> None:
        self.refused_by: Unavailable | None = None
        self._ballast = ballast
        self._probe = probe
        self._next_probe = 0.0

    @property
    def full(self) -> bool:
        """Whether database writes are refused because the disk is full."""
        return isinstance(self.refused_by, StorageFull)

    def note_refusal(self, refusal: Unavailable) -> bool:
        """Note that the database refused a write.

        Return True if the ballast was just released, so that a retry may succeed.
        """
        first = self.refused_by is None
        if type(self.refused_by) is not type(refusal):
            log.error("the database takes no writes", reason=str(refusal))
            self.refused_by = refusal
        self._next_probe = clock.monotonic() + PROBE_SECONDS
        if self._ballast is None or not self.full:
            return False
        self._ballast.release()
        return first

    def probe_if_due(self) -> None:
        """Find out, at most every PROBE_SECONDS, whether database writes succeed again."""
        if self.refused_by is None or clock.monotonic() < self._next_probe:
            return
        self._next_probe = clock.monotonic() + PROBE_SECONDS
        if self._ballast and not self._ballast.reserve():
            return
        try:
            self._probe()
        except Unavailable as refusal:
            self.note_refusal(refusal)
            return
        log.info("the database takes writes again")
        self.refused_by = None
