"""Connections to one server: HTTP/1.1, kept open for the next request.

Ours because a command is over sooner than a general HTTP client is imported. No redirects, no cookies and no
proxies: each could show the token to somebody else.
"""

import asyncio
import re
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from ssl import SSLContext
from typing import NamedTuple
from urllib.parse import SplitResult, urlsplit

from .. import clock
from ..domain.errors import Invalid
from .response import BrokenConnection, HttpResponse

_CONNECT = 5.0  # seconds
_SILENCE = 30.0
_ALIVE = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3}  # seconds, seconds, times
_IDLE = 4.0  # a server closes what was not used for 5
_GOODBYE = 1.0
_MOST = 100  # connections at once
_PORTS = {"http": 80, "https": 443}
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_NOT_IN_TARGET = re.compile(r"[^\x21-\x7e]")


class ConnectFailed(Exception):
    """No connection, so nothing was sent; the cause is an OSError."""


class OutgoingRequest(NamedTuple):
    """One request as it goes out."""

    method: str
    target: str  # path and query, quoted
    headers: Mapping[str, str]
    body: bytes | None = None
    silence: float | None = None  # seconds without a byte after which it is given up; else the pool's


class ConnectionPool:
    """Opens connections as they are needed. `context` is for https."""

    def __init__(self, url: str, context: SSLContext | None, *, silence: float | None = None) -> None:
        self._place = urlsplit(url)
        self._context = context
        self._silence = _SILENCE if silence is None else silence
        self._room = asyncio.Semaphore(_MOST)
        self._idle: list[_Connection] = []
        self._closed = False

    async def close(self) -> None:
        """Ends the connections nobody uses; the others end with their answer."""
        self._closed = True
        idle, self._idle = self._idle, []
        for connection in idle:
            await connection.close()

    @asynccontextmanager
    async def send(self, call: OutgoingRequest) -> AsyncIterator[HttpResponse]:
        """The answer, whose body is read while the block runs."""
        head = _head(call, self._place)
        async with self._room:
            connection = self._take() or await self._open()
            try:
                silence = self._silence if call.silence is None else call.silence
                response = await connection.ask(head + (call.body or b""), silence)
                yield response
            except BaseException:
                connection.abort()
                raise
            self._give_back(connection, response)

    def _give_back(self, connection: "_Connection", response: HttpResponse) -> None:
        if response.leaves_connection_usable and not self._closed:
            connection.idle_since = clock.monotonic()
            self._idle.append(connection)
        else:
            connection.abort()

    def _take(self) -> "_Connection | None":
        while self._idle:
            connection = self._idle.pop()
            if connection.is_fresh():
                return connection
            connection.abort()
        return None

    async def _open(self) -> "_Connection":
        place = self._place
        try:
            async with asyncio.timeout(_CONNECT):
                reader, writer = await asyncio.open_connection(
                    place.hostname, place.port or _PORTS[place.scheme], ssl=self._context
                )
            _watch(writer.get_extra_info("socket"))
        except OSError as error:  # a timeout is one
            raise ConnectFailed(str(error)) from error
        return _Connection(reader, writer)


class _Connection:
    """One request at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self.idle_since = 0.0

    async def ask(self, message: bytes, silence: float) -> HttpResponse:
        self._writer.write(message)
        try:
            async with asyncio.timeout(silence):
                await self._writer.drain()
        except OSError as error:
            raise BrokenConnection(str(error) or "nothing was taken in time") from None
        response = HttpResponse(self._reader, silence)
        await response.begin()
        return response

    def is_fresh(self) -> bool:
        """Whether the other side probably still listens."""
        closed = self._reader.at_eof() or self._writer.is_closing()
        return not closed and clock.monotonic() - self.idle_since < _IDLE

    async def close(self) -> None:
        """Says goodbye, which takes a moment when it is encrypted."""
        self._writer.close()
        with suppress(OSError):
            async with asyncio.timeout(_GOODBYE):
                await self._writer.wait_closed()
        self.abort()

    def abort(self) -> None:
        self._writer.transport.abort()


def _watch(connection: socket.socket) -> None:
    """Has the system ask whether the other side is still there: one at work may be silent for long."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _ALIVE.items():
        if option := getattr(socket, name, None):  # not every system has all of them
            connection.setsockopt(socket.IPPROTO_TCP, option, value)


def _head(call: OutgoingRequest, place: SplitResult) -> bytes:
    target = place.path + call.target
    if _NOT_IN_TARGET.search(target):
        raise Invalid(f"{target!r} cannot be asked for: it has to be quoted")
    headers = {"Host": _host(place), "Accept": "*/*", **call.headers}
    if call.body is not None or call.method not in ("GET", "DELETE"):
        headers["Content-Length"] = str(len(call.body or b""))
    for name, value in headers.items():
        if _CONTROL.search(value):
            raise Invalid(f"{name} must not contain control characters")
    lines = [f"{call.method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode()


def _host(place: SplitResult) -> str:
    """As a browser writes it: without a user, and without the port everybody expects."""
    name = place.hostname or ""
    name = f"[{name}]" if ":" in name else name if name.isascii() else name.encode("idna").decode()
    return name if place.port in (None, _PORTS[place.scheme]) else f"{name}:{place.port}"
