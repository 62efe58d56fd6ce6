"""One socket to the server that is opened again whenever it is lost."""

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
from .errors import ConnectionLost, ServerNotRunning, closing, refusal

_LARGEST = 64 * 1024 * 1024  # a history of many pages is one message
_POLL = 0.1
_PASSING = frozenset({HTTPStatus.BAD_GATEWAY, HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.GATEWAY_TIMEOUT})

Item = TypeVar("Item")


class ReconnectNeeded(Exception):
    """This connection cannot be trusted to bring the rest."""


class ReconnectingSocket:
    """`path` is asked before every connection, so that it can say how far we are."""

    def __init__(self, discovery: ServerDiscovery, path: Callable[[], str]) -> None:
        self._discovery = discovery
        self._path = path
        self._backoff = Backoff()
        self._stamp: object = None
        self._met = False
        self._tried = False

    async def connect(self) -> ClientConnection:
        """An open socket, however long it takes; an error when the server refuses or never was there."""
        while True:
            if self._tried:
                await self._wait(self._backoff.next())
            self._tried = True
            self._stamp = self._discovery.stamp()
            try:
                socket = await self._open(self._discovery.find())
            except (OSError, InvalidHandshake, ServerNotRunning) as error:
                self._judge(error)
            else:
                self._met = True
                return socket

    async def listen(
        self, to: Callable[[ClientConnection], AsyncIterator[Item]]
    ) -> AsyncGenerator[Item, None]:
        """What one socket after another brings, for as long as the server lets us in."""
        while True:
            socket = await self.connect()
            try:
                async for item in to(socket):
                    yield item
            except ConnectionClosed as closed:
                self.lost(closed)
            except (ReconnectNeeded, ConnectionLost, ServerNotRunning):
                pass  # asked again from where we stand
            finally:
                await socket.close()

    def progress(self) -> None:
        """Something was received: the next loss is a first one."""
        self._backoff.reset()

    def lost(self, closed: ConnectionClosed) -> None:
        """A socket was closed; raises when there is no point in opening another."""
        if closed.rcvd is not None and (error := closing(closed.rcvd.code, closed.rcvd.reason)):
            raise error from None

    async def _open(self, server: ServerAddress) -> ClientConnection:
        scheme, rest = server.url.split("://", 1)
        secure = scheme == "https"
        return await connect(
            f"{'wss' if secure else 'ws'}://{rest}{self._path()}",
            additional_headers={"Authorization": f"Bearer {server.token}"},
            user_agent_header=f"bullpen/{__version__}",
            ssl=tls.context(server),
            server_hostname=urlsplit(server.url).hostname if secure else None,
            compression=None,
            proxy=None,  # it would be shown the token
            max_size=_LARGEST,
            open_timeout=10,
            close_timeout=1,
        )

    def _judge(self, error: Exception) -> None:
        if isinstance(error, InvalidStatus):
            if error.response.status_code in _PASSING:
                return
            raise _refusal(error) from None
        if isinstance(error, ssl.SSLCertVerificationError):
            raise RemoteFault(f"the server's certificate is not trusted: {error.verify_message}") from None
        if not self._met:
            raise (error if isinstance(error, BullpenError) else self._discovery.absence()) from None

    async def _wait(self, seconds: float) -> None:
        """Until the time is over or a local server has started anew."""
        deadline = clock.monotonic() + seconds
        while (left := deadline - clock.monotonic()) > 0 and self._discovery.stamp() == self._stamp:  # noqa: ASYNC110
            await asyncio.sleep(min(_POLL, left))


def _refusal(error: InvalidStatus) -> BullpenError:
    try:
        body = msgspec.json.decode(error.response.body or b"")
    except msgspec.DecodeError:
        body = None
    return refusal(error.response.status_code, body, error.response.headers)
