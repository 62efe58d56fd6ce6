"""Send REST requests, and repeat them when the server restarts or cannot reach its database.

A request whose answer was lost may have taken effect. Repeating it is safe: every POST keeps one
Idempotency-Key over all attempts, and the other methods are idempotent.
"""

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from ssl import SSLCertVerificationError
from typing import Any, NamedTuple, TypeVar
from urllib.parse import urlencode

import msgspec

from .. import __version__, clock
from ..domain.errors import BullpenError, RemoteFault, Unavailable
from . import tls
from .backoff import Backoff
from .discovery import ServerAddress, ServerDiscovery
from .errors import ConnectionLost, ServerNotRunning, error_of_answer
from .http import ConnectFailed, ConnectionPool, OutgoingRequest
from .response import BodyTooLong, BrokenConnection, HttpResponse

Answer = TypeVar("Answer")

_MAX_ANSWER_BYTES = 512 * 1024 * 1024  # of an answer that is read as a whole
_UNAVAILABLE = 503
_NOT_FOUND = 404
_LONG_STALL_SECONDS = 7200.0  # the server ends a command after half an hour, and a copy after an hour


@dataclass(frozen=True)
class RestRequest:
    """One REST request, identical in every attempt."""

    method: str
    path: str
    body: Any = None
    query: Mapping[str, str] = field(default_factory=dict)
    key: str | None = None
    accepted_statuses: frozenset[int] = frozenset()  # error statuses that have a normal answer as body
    raw: bytes | None = None  # a body that is not JSON
    is_long: bool = False  # it may take long: it runs a command of the user, or uploads a large file

    def __post_init__(self) -> None:
        if self.method == "POST" and self.key is None:
            object.__setattr__(self, "key", str(uuid.uuid4()))


class RestReply(NamedTuple):
    """An answer that was received completely."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def is_error(self) -> bool:
        """Whether the status is 400 or higher."""
        return self.status >= 400


class _NoAnswer(Exception):
    """An attempt failed for a passing reason. `sent`: the request may have taken effect."""

    def __init__(self, reason: BullpenError, sent: bool) -> None:
        super().__init__(str(reason))
        self.reason = reason
        self.sent = sent


class RestClient:
    """Sends requests to the server, and repeats each for up to `patience` seconds."""

    def __init__(self, discovery: ServerDiscovery, patience: float) -> None:
        self.on_refusal: Callable[[BullpenError], None] = lambda _: None  # called once before a request waits
        self._discovery = discovery
        self._patience = patience
        self._server: ServerAddress | None = None
        self._pool: ConnectionPool | None = None
        self._has_answered = False  # after the first answer, a refused connection means a restart

    async def close(self) -> None:
        """Close all connections."""
        if self._pool is not None:
            await self._pool.close()
            self._pool = None

    async def call(self, answer: type[Answer], request: RestRequest, patience: float | None = None) -> Answer:
        """Send a request and return its decoded answer. With a patience of 0, make one attempt."""
        reply = await self._send_with_retries(request, self._patience if patience is None else patience)
        return _decode(answer, request, reply)

    async def remove(self, answer: type[Answer], request: RestRequest) -> Answer | None:
        """Send a DELETE and return its answer; None if an attempt whose answer was lost did the work."""
        reply = await self._send_with_retries(request, self._patience)
        return None if reply.is_error else _decode(answer, request, reply)

    async def read(self, request: RestRequest) -> RestReply:
        """Send a request and return its answer, which need not be JSON."""
        return await self._send_with_retries(request, self._patience)

    async def send(self, request: RestRequest) -> None:
        """Send a request and ignore the body of its answer."""
        await self._send_with_retries(request, self._patience)

    @asynccontextmanager
    async def stream(self, request: RestRequest) -> AsyncIterator[HttpResponse]:
        """Send a request once, without a retry, and yield the answer while it arrives.

        An error answer is read whole and raised.
        """
        try:
            pool, call = await self._prepare(request)
            async with pool.send(call) as response:
                if response.is_error:
                    raise _error_of(await _read_reply(request, response))
                yield response
        except (ConnectFailed, BrokenConnection) as error:
            raise self._connection_error(error) from None

    async def _send_with_retries(self, request: RestRequest, patience: float) -> RestReply:
        """Send a request until it is answered or the patience ends; raise the error of an error answer."""
        backoff = Backoff()
        deadline = clock.monotonic() + patience
        sent = notified = False
        while True:
            started = clock.monotonic()
            try:
                reply = await self._attempt(request)
            except _NoAnswer as failed:
                sent = sent or failed.sent
                if request.is_long and failed.sent:
                    deadline += clock.monotonic() - started  # only time without a server counts as waiting
                left = deadline - clock.monotonic()
                if left <= 0 or not (sent or self._has_answered):
                    raise failed.reason from None
                if isinstance(failed.reason, Unavailable) and not notified:
                    notified = True
                    self.on_refusal(failed.reason)
                await asyncio.sleep(min(backoff.next_delay(), left))
                continue
            done_before = sent and request.method == "DELETE" and reply.status == _NOT_FOUND
            if reply.is_error and not done_before and reply.status not in request.accepted_statuses:
                raise _error_of(reply)
            return reply

    async def _attempt(self, request: RestRequest) -> RestReply:
        """Send a request once; raise _NoAnswer if another attempt may succeed."""
        try:
            pool, call = await self._prepare(request)
            async with pool.send(call) as response:
                reply = await _read_reply(request, response)
        except ServerNotRunning as error:
            raise _NoAnswer(error, sent=False) from None
        except (ConnectFailed, BrokenConnection) as error:
            raise _NoAnswer(self._connection_error(error), sent=isinstance(error, BrokenConnection)) from None
        self._has_answered = True
        if reply.status == _UNAVAILABLE and _UNAVAILABLE not in request.accepted_statuses:
            raise _NoAnswer(_error_of(reply), sent=False)
        return reply

    async def _prepare(self, request: RestRequest) -> tuple[ConnectionPool, OutgoingRequest]:
        """Return the connection pool and the HTTP request with its headers and body."""
        server = self._discovery.find()
        headers = {"User-Agent": f"bullpen/{__version__}", "Authorization": f"Bearer {server.token}"}
        body = None
        if request.key is not None:
            headers["Idempotency-Key"] = request.key
        if request.body is not None:
            headers["Content-Type"] = "application/json"
            body = msgspec.json.encode(request.body)
        elif request.raw is not None:
            headers["Content-Type"] = "application/octet-stream"
            body = request.raw
        target = f"{request.path}?{urlencode(request.query)}" if request.query else request.path
        call = OutgoingRequest(
            request.method, target, headers, body, _LONG_STALL_SECONDS if request.is_long else None
        )
        return await self._pool_for(server), call

    async def _pool_for(self, server: ServerAddress) -> ConnectionPool:
        """Return the pool of a server, replaced if the address or the token has changed."""
        if self._pool is None or self._server != server:
            await self.close()
            self._server = server
            self._pool = ConnectionPool(server.url, tls.ssl_context(server))
        return self._pool

    def _connection_error(self, error: ConnectFailed | BrokenConnection) -> BullpenError:
        """Return the exception for a connection that could not be opened or broke."""
        if isinstance(error.__cause__, SSLCertVerificationError):
            return RemoteFault(f"the server's certificate is not trusted: {error.__cause__.verify_message}")
        if isinstance(error, ConnectFailed):
            return self._discovery.not_running_error()
        return ConnectionLost("the server went away before it answered; see whether it runs: bullpen status")


def _decode(answer: type[Answer], request: RestRequest, reply: RestReply) -> Answer:
    """Return the body of an answer as a typed value, or raise RemoteFault."""
    try:
        return msgspec.json.decode(reply.body, type=answer)
    except (msgspec.ValidationError, msgspec.DecodeError) as error:
        where = f"{request.method} {request.path}"
        raise RemoteFault(f"the server's answer to {where} cannot be decoded: {error}") from None


async def _read_reply(request: RestRequest, response: HttpResponse) -> RestReply:
    """Read the whole answer; raise RemoteFault if it is too large."""
    try:
        return RestReply(response.status, response.headers, await response.read(_MAX_ANSWER_BYTES))
    except BodyTooLong:
        where = f"{request.method} {request.path}"
        raise RemoteFault(
            f"the server's answer to {where} exceeds {_MAX_ANSWER_BYTES >> 20} MiB; request less at a time"
        ) from None


def _error_of(reply: RestReply) -> BullpenError:
    """Return the exception for an error answer."""
    try:
        body = msgspec.json.decode(reply.body)
    except msgspec.DecodeError:
        body = None
    return error_of_answer(reply.status, body, reply.headers)
