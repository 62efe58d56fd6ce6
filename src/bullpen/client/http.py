"""Send HTTP/1.1 requests to one server over a pool of persistent connections.

A general HTTP client takes longer to import than most commands run. Redirects, cookies and proxies are not
supported: each could send the token to another server.
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
from ..intervals import intervals
from .response import BrokenConnection, HttpResponse

_CONNECT_SECONDS = 5.0
_KEEPALIVE = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3}  # seconds, seconds, probes
_MAX_IDLE_SECONDS = 4.0  # the server closes a connection that was idle for 5
_CLOSE_SECONDS = 1.0
_MAX_CONNECTIONS = 100
_DEFAULT_PORTS = {"http": 80, "https": 443}
_CONTROL_CHARACTER = re.compile(r"[\x00-\x1f\x7f]")
_NOT_IN_TARGET = re.compile(r"[^\x21-\x7e]")


class ConnectFailed(Exception):
    """No connection could be opened, so nothing was sent. `__cause__` is an OSError."""


class OutgoingRequest(NamedTuple):
    """One HTTP request as it is sent."""

    method: str
    target: str  # path and query, quoted
    headers: Mapping[str, str]
    body: bytes | None = None
    stall_seconds: float | None = None  # without a byte until the request fails; None: the usual time


class ConnectionPool:
    """Persistent connections to one server, opened when they are needed. `context` is for https."""

    def __init__(self, url: str, context: SSLContext | None) -> None:
        self._url = urlsplit(url)
        self._context = context
        self._slots = asyncio.Semaphore(_MAX_CONNECTIONS)
        self._idle: list[_Connection] = []
        self._closed = False

    async def close(self) -> None:
        """Close the idle connections; a connection in use is closed after its answer."""
        self._closed = True
        idle, self._idle = self._idle, []
        for connection in idle:
            await connection.close()

    @asynccontextmanager
    async def send(self, request: OutgoingRequest) -> AsyncIterator[HttpResponse]:
        """Send a request and yield its answer. Read the body inside the `async with` block."""
        head = _request_head(request, self._url)
        async with self._slots:
            connection = self._take_idle() or await self._open()
            try:
                stall = intervals().stall if request.stall_seconds is None else request.stall_seconds
                response = await connection.send(head + (request.body or b""), stall)
                yield response
            except BaseException:
                connection.abort()
                raise
            self._give_back(connection, response)

    def _give_back(self, connection: "_Connection", response: HttpResponse) -> None:
        """Keep the connection for the next request, or close it if it cannot be used again."""
        if response.leaves_connection_usable and not self._closed:
            connection.idle_since = clock.monotonic()
            self._idle.append(connection)
        else:
            connection.abort()

    def _take_idle(self) -> "_Connection | None":
        """Take an idle connection that is still open out of the pool; return None if there is none."""
        while self._idle:
            connection = self._idle.pop()
            if connection.is_fresh():
                return connection
            connection.abort()
        return None

    async def _open(self) -> "_Connection":
        """Open a connection with TCP keepalive, or raise ConnectFailed."""
        url = self._url
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                reader, writer = await asyncio.open_connection(
                    url.hostname, url.port or _DEFAULT_PORTS[url.scheme], ssl=self._context
                )
            _enable_keepalive(writer.get_extra_info("socket"))
        except OSError as error:  # a timeout is one
            raise ConnectFailed(str(error)) from error
        return _Connection(reader, writer)


class _Connection:
    """A connection that carries one request at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self.idle_since = 0.0

    async def send(self, message: bytes, stall_seconds: float) -> HttpResponse:
        """Send a request; return the answer once its head has arrived, or raise BrokenConnection."""
        self._writer.write(message)
        try:
            async with asyncio.timeout(stall_seconds):
                await self._writer.drain()
        except OSError as error:
            raise BrokenConnection(str(error) or "the server did not read the request in time") from None
        response = HttpResponse(self._reader, stall_seconds)
        await response.read_head()
        return response

    def is_fresh(self) -> bool:
        """Return whether the server probably still keeps the connection open."""
        closed = self._reader.at_eof() or self._writer.is_closing()
        return not closed and clock.monotonic() - self.idle_since < _MAX_IDLE_SECONDS

    async def close(self) -> None:
        """Close the connection; TLS needs a moment to announce the end."""
        self._writer.close()
        with suppress(OSError):
            async with asyncio.timeout(_CLOSE_SECONDS):
                await self._writer.wait_closed()
        self.abort()

    def abort(self) -> None:
        """Close the connection at once."""
        self._writer.transport.abort()


def _enable_keepalive(connection: socket.socket) -> None:
    """Detect a dead server with TCP keepalive: a request that takes long may send no byte meanwhile."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEPALIVE.items():
        if option := getattr(socket, name, None):  # some systems lack some of these options
            connection.setsockopt(socket.IPPROTO_TCP, option, value)


def _request_head(request: OutgoingRequest, url: SplitResult) -> bytes:
    """Return the request line and the headers; raise Invalid if they contain forbidden characters."""
    target = url.path + request.target
    if _NOT_IN_TARGET.search(target):
        raise Invalid(f"{target!r} is not a valid path: percent-encode its special characters")
    headers = {"Host": _host_header(url), "Accept": "*/*", **request.headers}
    if request.body is not None or request.method not in ("GET", "DELETE"):
        headers["Content-Length"] = str(len(request.body or b""))
    for name, value in headers.items():
        if _CONTROL_CHARACTER.search(value):
            raise Invalid(f"{name} must not contain control characters")
    lines = [f"{request.method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode()


def _host_header(url: SplitResult) -> str:
    """Return the Host header as browsers write it: without a user, and without the default port."""
    name = url.hostname or ""
    name = f"[{name}]" if ":" in name else name if name.isascii() else name.encode("idna").decode()
    return name if url.port in (None, _DEFAULT_PORTS[url.scheme]) else f"{name}:{url.port}"
