"""Track open WebSockets by principal, to close them when a token is revoked, and by route, to count them."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

CloseSocket = Callable[[str], None]


class OpenSockets:
    """The open sockets of a server. Each has a function that closes it with a reason, without blocking."""

    def __init__(self) -> None:
        self.by_route: Counter[str] = Counter()
        self._by_principal: dict[str, set[CloseSocket]] = {}

    @contextmanager
    def track(self, principal_id: str, route: str, close: CloseSocket) -> Iterator[None]:
        """Count an open socket while the block runs, and let `close_all` call its `close`."""
        sockets = self._by_principal.setdefault(principal_id, set())
        sockets.add(close)
        self.by_route[route] += 1
        try:
            yield
        finally:
            self.by_route[route] -= 1
            sockets.discard(close)
            if not sockets and self._by_principal.get(principal_id) is sockets:
                del self._by_principal[principal_id]

    def close_all(self, principal_id: str, reason: str) -> None:
        """Close all sockets of a principal."""
        for close in tuple(self._by_principal.get(principal_id, ())):
            close(reason)

    def has_open(self, principal_id: str) -> bool:
        """Return whether a principal has an open socket."""
        return principal_id in self._by_principal
