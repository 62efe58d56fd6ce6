"""A proxy for PostgreSQL that can cut a connection before or after the server receives the next COMMIT."""

import select
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SOCKET_NAME = ".s.PGSQL.5432"


class CommitCuttingProxy:
    """Forwards connections from the socket in `listening` to the socket in `server`, both directories."""

    def __init__(self, listening: Path, server: Path) -> None:
        self.cut: str | None = None  # cut "before" or "after" the server receives the next COMMIT
        self.cuts = 0
        self.refusing = False  # whether new connections are closed at once
        self._server = str(server / SOCKET_NAME)
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(str(listening / SOCKET_NAME))
        self._socket.listen()
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._socket.accept()
            except OSError:
                return
            if self.refusing:
                client.close()
                continue
            threading.Thread(target=self._forward, args=(client,), daemon=True).start()

    def _forward(self, client: socket.socket) -> None:
        with client, socket.socket(socket.AF_UNIX) as server:
            server.connect(self._server)
            while True:
                ready, _, _ = select.select([client, server], [], [])
                for source in ready:
                    data = source.recv(1 << 16)
                    if not data or (source is client and self._cuts(data, server)):
                        return
                    (server if source is client else client).sendall(data)

    def _cuts(self, data: bytes, server: socket.socket) -> bool:
        """Return whether the connection is cut at this data of the client."""
        if self.cut is None or b"COMMIT" not in data:
            return False
        if self.cut == "after":
            server.sendall(data)
            server.recv(1 << 16)  # the response that the client never receives
        self.cut = None
        self.cuts += 1
        return True


@contextmanager
def commit_cutting_proxy(listening: Path, server: Path) -> Iterator[CommitCuttingProxy]:
    proxy = CommitCuttingProxy(listening, server)
    try:
        yield proxy
    finally:
        proxy.close()
