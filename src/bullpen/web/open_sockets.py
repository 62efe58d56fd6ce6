"""The sockets that are open: whose they are, so that they close with their key, and on which route."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Close = Callable[[str], None]


class OpenSockets:
    """`close` of a socket is called with the reason; it must not wait."""

    def __init__(self) -> None:
        self.by_route: Counter[str] = Counter()
        self._by_principal: dict[str, set[Close]] = {}

    @contextmanager
    def keep(self, principal_id: str, route: str, close: Close) -> Iterator[None]:
        """Remembers a socket while the block runs."""
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

    def close_of(self, principal_id: str, reason: str) -> None:
        for close in tuple(self._by_principal.get(principal_id, ())):
            close(reason)

    def has(self, principal_id: str) -> bool:
        return principal_id in self._by_principal
