"""Connect a WebSocket to the server, and connect it again whenever the connection is lost."""

import asyncio
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from http import HTTPStatus
from typing import TypeVar
from urllib.parse import urlsplit

import msgspec
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus

from .. import __version__, clock
from ..domain.errors import BullpenError, RemoteFault
from . import tls
from .backoff import Backoff
from .discovery import ServerAddress, ServerDiscovery
from .errors import ConnectionLost, ServerNotRunning, error_of_answer, error_of_close_code

_MAX_MESSAGE_BYTES = 64 * 1024 * 1024  # a history of many pages is one message
_POLL_SECONDS = 0.1
_TRANSIENT_STATUSES = frozenset(
    {HTTPStatus.BAD_GATEWAY, HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.GATEWAY_TIMEOUT}
)

Item = TypeVar("Item")


class ReconnectNeeded(Exception):
    """The connection skipped something that its reader needs; a new connection must request it."""


class ReconnectingSocket:
    """A WebSocket that connects again after a loss. `path` returns the path for each connection."""

    def __init__(self, discovery: ServerDiscovery, path: Callable[[], str]) -> None:
        self._discovery = discovery
        self._path = path
        self._backoff = Backoff()
        self._stamp: object = None
        self._has_connected = False
        self._has_tried = False

    async def connect(self) -> ClientConnection:
        """Return an open socket, however long it takes; raise if the server refuses or never answered."""
        while True:
            if self._has_tried:
                await self._wait(self._backoff.next_delay())
            self._has_tried = True
            self._stamp = self._discovery.stamp()
            try:
                socket = await self._open(self._discovery.find())
            except (OSError, InvalidHandshake, ServerNotRunning) as error:
                self._raise_unless_transient(error)
            else:
                self._has_connected = True
                return socket

    async def listen(
        self, read: Callable[[ClientConnection], AsyncIterator[Item]]
    ) -> AsyncGenerator[Item, None]:
        """Yield what `read` yields for one connection after another, until the server refuses one."""
        while True:
            socket = await self.connect()
            try:
                async for item in read(socket):
                    yield item
            except ConnectionClosed as closed:
                self.raise_if_final(closed)
            except (ReconnectNeeded, ConnectionLost, ServerNotRunning):
                pass  # the next connection continues from the current position
            finally:
                await socket.close()

    def reset_backoff(self) -> None:
        """Start the delays again: a message was received, so the connection worked."""
        self._backoff.reset()

    def raise_if_final(self, closed: ConnectionClosed) -> None:
        """Raise the error of a close code after which a new connection is useless."""
        if closed.rcvd is not None and (error := error_of_close_code(closed.rcvd.code, closed.rcvd.reason)):
            raise error from None

    async def _open(self, server: ServerAddress) -> ClientConnection:
        """Make one attempt to connect; never through a proxy, which would receive the token."""
        scheme, rest = server.url.split("://", 1)
        secure = scheme == "https"
        return await connect(
            f"{'wss' if secure else 'ws'}://{rest}{self._path()}",
            additional_headers={"Authorization": f"Bearer {server.token}"},
            user_agent_header=f"bullpen/{__version__}",
            ssl=tls.ssl_context(server),
            server_hostname=urlsplit(server.url).hostname if secure else None,
            compression=None,
            proxy=None,  # a proxy would receive the token
            max_size=_MAX_MESSAGE_BYTES,
            open_timeout=10,
            close_timeout=1,
        )

    def _raise_unless_transient(self, error: Exception) -> None:
        """Return if a failed attempt may succeed later; otherwise raise the error for the caller."""
        if isinstance(error, InvalidStatus):
            if error.response.status_code in _TRANSIENT_STATUSES:
                return
            raise _error_of_handshake(error) from None
        if isinstance(error, ssl.SSLCertVerificationError):
            raise RemoteFault(f"the server's certificate is not trusted: {error.verify_message}") from None
        if not self._has_connected:
            raise (
                error if isinstance(error, BullpenError) else self._discovery.not_running_error()
            ) from None

    async def _wait(self, seconds: float) -> None:
        """Wait until the time is over or a local server has started again."""
        deadline = clock.monotonic() + seconds
        while (left := deadline - clock.monotonic()) > 0 and self._discovery.stamp() == self._stamp:  # noqa: ASYNC110
            await asyncio.sleep(min(_POLL_SECONDS, left))


def _error_of_handshake(error: InvalidStatus) -> BullpenError:
    """Return the exception for an error answer to the WebSocket handshake."""
    try:
        body = msgspec.json.decode(error.response.body or b"")
    except msgspec.DecodeError:
        body = None
    return error_of_answer(error.response.status_code, body, error.response.headers)
