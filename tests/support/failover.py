"""A Unix socket that leads to one PostgreSQL cluster or another, and a standby of a cluster."""

import select
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .cutting_proxy import SOCKET


class Switch:
    """Carries connections to the cluster it is set to; turning it cuts the ones there are."""

    def __init__(self, listening: Path, server: Path) -> None:
        self._server = server
        self._open: set[socket.socket] = set()
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(str(listening / SOCKET))
        self._socket.listen()
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def turn_to(self, server: Path) -> None:
        self._server = server
        for each in list(self._open):
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
            threading.Thread(target=self._carry, args=(client,), daemon=True).start()

    def _carry(self, client: socket.socket) -> None:
        self._open.add(client)
        try:
            with client, socket.socket(socket.AF_UNIX) as server:
                server.connect(str(self._server / SOCKET))
                while True:
                    ready, _, _ = select.select([client, server], [], [])
                    for one in ready:
                        data = one.recv(1 << 16)
                        if not data:
                            return
                        (server if one is client else client).sendall(data)
        except OSError:
            return
        finally:
            self._open.discard(client)


@contextmanager
def switch(listening: Path, server: Path) -> Iterator[Switch]:
    made = Switch(listening, server)
    try:
        yield made
    finally:
        made.close()
