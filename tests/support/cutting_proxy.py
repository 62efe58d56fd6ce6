"""Stands between a client and PostgreSQL and cuts the connection before or after the next COMMIT."""

import select
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SOCKET = ".s.PGSQL.5432"


class CuttingProxy:
    def __init__(self, listening: Path, server: Path) -> None:
        self.cut: str | None = None  # "before" or "after" the server gets the next COMMIT
        self.cuts = 0
        self.refusing = False  # new connections
        self._server = str(server / SOCKET)
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(str(listening / SOCKET))
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
            threading.Thread(target=self._carry, args=(client,), daemon=True).start()

    def _carry(self, client: socket.socket) -> None:
        with client, socket.socket(socket.AF_UNIX) as server:
            server.connect(self._server)
            while True:
                ready, _, _ = select.select([client, server], [], [])
                for one in ready:
                    data = one.recv(1 << 16)
                    if not data or (one is client and self._cuts(data, server)):
                        return
                    (server if one is client else client).sendall(data)

    def _cuts(self, data: bytes, server: socket.socket) -> bool:
        if self.cut is None or b"COMMIT" not in data:
            return False
        if self.cut == "after":
            server.sendall(data)
            server.recv(1 << 16)  # the answer the client will never see
        self.cut = None
        self.cuts += 1
        return True


@contextmanager
def cutting_proxy(listening: Path, server: Path) -> Iterator[CuttingProxy]:
    proxy = CuttingProxy(listening, server)
    try:
        yield proxy
    finally:
        proxy.close()
