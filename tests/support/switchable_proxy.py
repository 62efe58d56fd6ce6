"""A proxy on a Unix socket that forwards to one of several PostgreSQL clusters."""

import select
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .commit_cutting_proxy import SOCKET_NAME


class SwitchableProxy:
    """Forwards connections to the selected cluster. Selecting another cluster closes the open connections."""

    def __init__(self, listening: Path, server: Path) -> None:
        self._server = server
        self._clients: set[socket.socket] = set()
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(str(listening / SOCKET_NAME))
        self._socket.listen()
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def switch_to(self, server: Path) -> None:
        self._server = server
        for each in list(self._clients):
            each.shutdown(socket.SHUT_RDWR)

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
            threading.Thread(target=self._forward, args=(client,), daemon=True).start()

    def _forward(self, client: socket.socket) -> None:
        self._clients.add(client)
        try:
            with client, socket.socket(socket.AF_UNIX) as server:
                server.connect(str(self._server / SOCKET_NAME))
                while True:
                    ready, _, _ = select.select([client, server], [], [])
                    for source in ready:
                        data = source.recv(1 << 16)
                        if not data:
                            return
                        (server if source is client else client).sendall(data)
        except OSError:
            return
        finally:
            self._clients.discard(client)


@contextmanager
def switchable_proxy(listening: Path, server: Path) -> Iterator[SwitchableProxy]:
    made = SwitchableProxy(listening, server)
    try:
        yield made
    finally:
        made.close()
