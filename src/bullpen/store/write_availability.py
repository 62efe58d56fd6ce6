"""Whether the database takes writes: closed by the first refusal, open again once a write succeeds.

A refusal is a full disk (StorageFull) or a database server out of reach (Unreachable). A lock that another
process holds closes nothing.
"""

from collections.abc import Callable

import structlog

from .. import clock
from ..domain.errors import StorageFull, Unavailable
from .ballast import Ballast

log = structlog.get_logger()

PROBE_SECONDS = 0.5


class WriteAvailability:
    """With a ballast, there is room again only when the ballast fits on the disk as well."""

    def __init__(self, ballast: Ballast | None, probe: Callable[[], None]) -> None:
        self.closed_by: Unavailable | None = None
        self._ballast = ballast
        self._probe = probe
        self._next_look = 0.0

    @property
    def full(self) -> bool:
        return isinstance(self.closed_by, StorageFull)

    def close(self, refusal: Unavailable) -> bool:
        """Note that a write was refused. Return True if the ballast was just dropped: a retry may succeed."""
        first = self.closed_by is None
        if type(self.closed_by) is not type(refusal):
            log.error("the database takes no writes", reason=str(refusal))
            self.closed_by = refusal
        self._next_look = clock.monotonic() + PROBE_SECONDS
        if self._ballast is None or not self.full:
            return False
        self._ballast.drop()
        return first

    def look(self) -> None:
        """Find out, at most every PROBE_SECONDS, whether writes succeed again."""
        if self.closed_by is None or clock.monotonic() < self._next_look:
            return
        self._next_look = clock.monotonic() + PROBE_SECONDS
        if self._ballast and not self._ballast.restore():
            return
        try:
            self._probe()
        except Unavailable as refusal:
            self.close(refusal)
            return
        log.info("the database takes writes again")
        self.closed_by = None
