"""Transactions on the writing connection, and what became of each even when the connection is lost."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from threading import Event
from typing import Any, Protocol

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError

from .. import clock
from ..domain.errors import Unavailable
from .engine import passes, refusal
from .fence import Fence

RETRY_SECONDS = 0.5


class JobKind(Protocol):
    """What items of one kind come to in the database."""

    together: bool  # whether several share a transaction

    def write(self, connection: Connection, items: Sequence[Any], /) -> Sequence[Any]:
        """One result for each item; a result that is an exception belongs to its item alone."""


class Transactions:
    """Runs one after another; all from one thread."""

    def __init__(self, engine: Engine, fence: Fence) -> None:
        self.connection = engine.connect()
        self.fence = fence
        self.committed = 0  # heartbeats are not counted
        self.refused = 0  # by the disk, a lock, or a server out of reach
        self.on_doubt: Callable[[Unavailable], None] = lambda _: None  # called when a commit's answer is lost
        self._given_up = Event()
        self._last_beat = clock.monotonic()

    def run(self, kind: JobKind, items: Sequence[Any], again: bool = True) -> Sequence[Any]:
        """Write the items and commit.

        Raise Unavailable if nothing was stored and it may work later, FenceLost if it never will.
        """
        step = 0 if kind is _HEARTBEAT else 1
        committing = False
        try:
            with self.connection.begin():
                self.fence.advance(self.connection, step)
                results = kind.write(self.connection, items)
                committing = True
        except DBAPIError as error:
            if not passes(error):
                raise
            if not committing and error.connection_invalidated and again:
                # The server was restarted while nothing was written; a new connection may do.
                return self.run(kind, items, again=False)
            in_doubt = committing and error.connection_invalidated
            if not in_doubt or not self._settle(refusal(error, self.connection.engine.url)):
                self.refused += 1
                raise refusal(error, self.connection.engine.url) from error
        self.fence.confirm()
        self.committed += step
        self._last_beat = clock.monotonic()
        return results

    def beat(self) -> None:
        """Show other servers that this one lives, and find out whether the database takes its writes."""
        self._last_beat = clock.monotonic()
        self.run(_HEARTBEAT, ())

    def beat_due_in(self) -> float:
        """Return the seconds until the next heartbeat; each commit is one as well."""
        return max(0.0, self._last_beat + self.fence.lease.heartbeat - clock.monotonic())

    def give_up(self) -> None:
        """No more waiting for a server that does not come back; may be called from any thread."""
        self._given_up.set()

    def close(self, release: bool) -> None:
        """Close the connection; `release`: after telling other servers that this one has stopped."""
        if release:
            with suppress(DBAPIError), self.connection.begin():
                self.fence.release(self.connection)
        self.connection.close()
        self.connection.engine.dispose()

    def _settle(self, refused: Unavailable) -> bool:
        """Return whether a commit whose answer was lost took place; wait until that is known."""
        self.on_doubt(refused)
        while True:
            try:
                with self.connection.begin():
                    outcome = self.fence.settle(self.connection)
            except DBAPIError as error:
                if not passes(error):
                    raise
                outcome = None
            if outcome is not None:
                return outcome
            if self._given_up.wait(RETRY_SECONDS):
                return False


class _Heartbeat:
    """A transaction that moves nothing but the heartbeat: losing it in a failover loses nothing."""

    together = True

    def write(self, _connection: Connection, items: Sequence[Any]) -> Sequence[Any]:
        return items


_HEARTBEAT: JobKind = _Heartbeat()
