"""Accept connections, one per turn of the event loop, and count each one before its first byte is read.

uvicorn learns of a TLS connection only after its handshake, when an unfinished one has already taken a file
descriptor. So the server accepts connections itself. Those that are open already are served between two new
ones, however fast clients connect.
"""

import asyncio
import errno
import socket
import ssl
from collections.abc import Callable

import structlog

from .connections import ClientConnection, UnauthenticatedConnections

log = structlog.get_logger()

RETRY_SECONDS = 1.0  # after an accept that failed
EXHAUSTED_ERRNOS = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)

MakeProtocol = Callable[[ClientConnection], asyncio.Protocol]


class ConnectionListener:
    """Accepts connections from a listening socket between `start` and `close`."""

    def __init__(
        self,
        listening: socket.socket,
        connections: UnauthenticatedConnections,
        make_protocol: MakeProtocol,
        ssl_context: ssl.SSLContext | None,
    ) -> None:
        self._socket = listening
        self._connections = connections
        self._make_protocol = make_protocol
        self._ssl_context = ssl_context
        self._loop = asyncio.get_running_loop()
        self._opening: set[asyncio.Task[bool]] = set()
        self._retry: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Start to accept connections."""
        self._loop.add_reader(self._socket.fileno(), self._accept)

    def close(self) -> None:
        """Stop accepting, and drop the connections whose TLS handshake is not finished."""
        self._loop.remove_reader(self._socket.fileno())
        if self._retry is not None:
            self._retry.cancel()
        for task in self._opening:
            task.cancel()

    def _accept(self) -> None:
        """Accept one connection; after an error such as a lack of descriptors, pause."""
        try:
            client, _address = self._socket.accept()
            self._open(client)
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return
        except OSError as error:
            self._pause(error)

    def _pause(self, error: OSError) -> None:
        """Accept nothing for a moment: the socket would stay readable and keep the event loop busy."""
        log.error("cannot accept connections", reason=error.strerror)
        if error.errno in EXHAUSTED_ERRNOS:
            self._connections.make_room()
        self._loop.remove_reader(self._socket.fileno())
        self._retry = self._loop.call_later(RETRY_SECONDS, self.start)

    def _open(self, client: socket.socket) -> None:
        """Count an accepted connection, and start the task that opens its protocol."""
        try:
            client.setblocking(False)
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError:
            client.close()
            raise
        connection = self._connections.add(client.close)
        task = self._loop.create_task(self._hand_over(client, connection))
        connection.abort = connection.expire = task.cancel

        def finish(task: asyncio.Task[bool]) -> None:
            self._opening.discard(task)
            if task.cancelled() or not task.result():
                connection.close()
                client.close()

        self._opening.add(task)
        task.add_done_callback(finish)

    async def _hand_over(self, client: socket.socket, connection: ClientConnection) -> bool:
        """Give the connection to an HTTP protocol; return False if its TLS handshake failed."""
        try:
            await self._loop.connect_accepted_socket(
                lambda: self._make_protocol(connection), client, ssl=self._ssl_context
            )
        except OSError:
            return False
        return True
