"""Run transactions on the writing connection, and find out their outcome if the connection is lost."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from threading import Event
from typing import Any, Protocol

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError

from .. import clock
from ..domain.errors import Unavailable
from .engine import is_temporary, temporary_error
from .fence import Fence

RETRY_SECONDS = 0.5


class JobKind(Protocol):
    """How database jobs of one kind are written."""

    together: bool  # whether several items share a transaction

    def write(self, connection: Connection, items: Sequence[Any], /) -> Sequence[Any]:
        """Write items and return a result for each; a result that is an exception concerns its item only."""


class Transactions:
    """Runs database transactions one after another; used by one thread only."""

    def __init__(self, engine: Engine, fence: Fence) -> None:
        self.connection = engine.connect()
        self.fence = fence
        self.committed = 0  # heartbeats are not counted
        self.refused = 0  # because of a full disk, a lock, or an unreachable server
        # Called when the connection breaks during a commit.
        self.on_unknown_outcome: Callable[[Unavailable], None] = lambda _: None
        self._stopping = Event()
        self._last_heartbeat = clock.monotonic()

    def run(self, kind: JobKind, items: Sequence[Any], reconnect: bool = True) -> Sequence[Any]:
        """Write the items in one transaction and return their results.

        Raise Unavailable if nothing was stored and it may succeed later, FenceLost if it never will.
        """
        step = 0 if kind is _HEARTBEAT else 1
        committing = False
        try:
            with self.connection.begin():
                self.fence.advance(self.connection, step)
                results = kind.write(self.connection, items)
                committing = True
        except DBAPIError as error:
            if not is_temporary(error):
                raise
            if not committing and error.connection_invalidated and reconnect:
                # The database server was restarted between transactions; try a new connection.
                return self.run(kind, items, reconnect=False)
            in_doubt = committing and error.connection_invalidated
            if not in_doubt or not self._commit_succeeded(temporary_error(error, self.connection.engine.url)):
                self.refused += 1
                raise temporary_error(error, self.connection.engine.url) from error
        self.fence.confirm()
        self.committed += step
        self._last_heartbeat = clock.monotonic()
        return results

    def send_heartbeat(self) -> None:
        """Write a heartbeat, which also shows whether the database accepts writes."""
        self._last_heartbeat = clock.monotonic()
        self.run(_HEARTBEAT, ())

    def seconds_to_heartbeat(self) -> float:
        """Return the seconds until the next heartbeat is due; each commit counts as one."""
        return max(0.0, self._last_heartbeat + self.fence.lease.heartbeat - clock.monotonic())

    def stop_waiting(self) -> None:
        """Stop waiting for an unreachable database; may be called from any thread."""
        self._stopping.set()

    def close(self, release: bool) -> None:
        """Close the connection. `release`: first mark this server as stopped in the fence."""
        if release:
            with suppress(DBAPIError), self.connection.begin():
                self.fence.release(self.connection)
        self.connection.close()
        self.connection.engine.dispose()

    def _commit_succeeded(self, refused: Unavailable) -> bool:
        """Wait until it is known whether a commit whose answer was lost took place; return that."""
        self.on_unknown_outcome(refused)
        while True:
            try:
                with self.connection.begin():
                    outcome = self.fence.last_commit_succeeded(self.connection)
            except DBAPIError as error:
                if not is_temporary(error):
                    raise
                outcome = None
            if outcome is not None:
                return outcome
            if self._stopping.wait(RETRY_SECONDS):
                return False


class _Heartbeat:
    """The job kind of heartbeats: a transaction that writes no items."""

    together = True

    def write(self, _connection: Connection, items: Sequence[Any]) -> Sequence[Any]:
        """Write nothing; the transaction itself moves the fence."""
        return items


_HEARTBEAT: JobKind = _Heartbeat()
