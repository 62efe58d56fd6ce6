"""Bound what clients without a valid credential can hold: connections, time, header bytes.

A connection counts as unauthenticated from its accept, TLS handshake included, until a request on it has
carried a valid credential. When too many are open, the oldest one is closed, so that a new client gets the
chance to show its credential.
"""

import asyncio
import os
from collections.abc import Callable

import structlog
from starlette.types import Scope

log = structlog.get_logger()

MAX_HEADER_BYTES = 64 << 10  # of one request, its first line included; 431 above
MAX_TARGET_BYTES = 16 << 10  # of the path and query of one request; 431 above
MAX_HEADER_FIELDS = 100  # of one request; 431 above
MAX_UNAUTHENTICATED = 4096  # connections; each takes about 12 KB of memory
MIN_UNAUTHENTICATED = 8  # connections that are accepted however few file descriptors are left
USABLE_SHARE = 0.75  # of the file descriptors; unauthenticated connections leave the last quarter free
RECOUNT_SECONDS = 1.0  # how long a count of the open file descriptors is used
REPORT_SECONDS = 60.0  # between two log lines about closed connections

OnRefusal = Callable[[str, int, str], None]  # path, status, peer

# Keys of the extensions in a request's scope.
AUTHENTICATED = "bullpen.authenticated"  # marks the connection; the gate calls it with a valid credential
ANSWERED = "bullpen.answered"  # the status with which the protocol has answered in place of the application


def authenticate(scope: Scope) -> None:
    """Mark the connection of this request as one that has carried a valid credential."""
    scope["extensions"][AUTHENTICATED]()


class ClientConnection:
    """One accepted connection and the deadline of the request that is arriving on it.

    `abort` closes the connection at once. `expire` is called when the deadline has passed.
    """

    def __init__(self, connections: "UnauthenticatedConnections", abort: Callable[[], object]) -> None:
        self.abort = self.expire = abort
        self.authenticated = False
        self._connections = connections
        self._timer: asyncio.TimerHandle | None = None

    def start_deadline(self) -> None:
        """Start the deadline unless it is running."""
        if self._timer is None:
            loop, seconds = asyncio.get_running_loop(), self._connections.request_seconds
            self._timer = loop.call_later(seconds, self._expire)

    def stop_deadline(self) -> None:
        """Stop the deadline, because the request is complete."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def abort_after(self, seconds: float) -> None:
        """Give the client so long to read its last answer."""
        self.stop_deadline()
        self.expire = self.abort
        self._timer = asyncio.get_running_loop().call_later(seconds, self._expire)

    def authenticate(self) -> None:
        """Exempt this connection from the cap on unauthenticated connections."""
        self.authenticated = True
        self._connections.remove(self)

    def close(self) -> None:
        """Stop the deadline and the counting of a connection that has ended."""
        self.stop_deadline()
        self._connections.remove(self)

    def _expire(self) -> None:
        """Call `expire`, because the deadline has passed."""
        self._timer = None
        self.expire()


class UnauthenticatedConnections:
    """The unauthenticated connections, the oldest first, and the cap on their number."""

    def __init__(self, request_seconds: float, descriptor_limit: int) -> None:
        self.request_seconds = request_seconds
        self.evicted = 0
        self._usable = int(descriptor_limit * USABLE_SHARE)
        self._unauthenticated: dict[ClientConnection, None] = {}
        self._others = 0  # file descriptors that are not unauthenticated connections
        self._counted_at = self._reported_at = float("-inf")
        self._reported = 0

    def __len__(self) -> int:
        return len(self._unauthenticated)

    def add(self, abort: Callable[[], object]) -> ClientConnection:
        """Count a new connection, start its deadline, and close the oldest ones above the cap."""
        connection = ClientConnection(self, abort)
        self._unauthenticated[connection] = None
        connection.start_deadline()
        if len(self) > MIN_UNAUTHENTICATED and len(self) > (cap := self._cap()):
            while len(self) > cap:
                self._evict_oldest()
            self._report(cap)
        return connection

    def remove(self, connection: ClientConnection) -> None:
        """Stop counting a connection, which is authenticated or closed."""
        self._unauthenticated.pop(connection, None)

    def make_room(self) -> None:
        """Close connections, the oldest first, down to the minimum: no file descriptor is left."""
        while len(self) > MIN_UNAUTHENTICATED:
            self._evict_oldest()
        self._report(MIN_UNAUTHENTICATED)

    def _cap(self) -> int:
        """Return how many unauthenticated connections may be open now."""
        now = asyncio.get_running_loop().time()
        if now - self._counted_at >= RECOUNT_SECONDS:
            self._counted_at = now
            self._others = _open_descriptors(otherwise=self._usable + len(self)) - len(self)
        return max(MIN_UNAUTHENTICATED, min(MAX_UNAUTHENTICATED, self._usable - self._others))

    def _evict_oldest(self) -> None:
        """Close the oldest unauthenticated connection."""
        oldest = next(iter(self._unauthenticated))
        oldest.close()
        oldest.abort()
        self.evicted += 1

    def _report(self, cap: int) -> None:
        """Log how many connections were closed, at most once a minute."""
        now = asyncio.get_running_loop().time()
        if now - self._reported_at >= REPORT_SECONDS:
            closed, self._reported = self.evicted - self._reported, self.evicted
            self._reported_at = now
            log.warning("closed the oldest connections without a credential", closed=closed, allowed=cap)


def _open_descriptors(otherwise: int) -> int:
    """Count the open file descriptors. Counting needs one more; return `otherwise` if there is none."""
    try:
        return len(os.listdir("/proc/self/fd"))
    except OSError:
        return otherwise
