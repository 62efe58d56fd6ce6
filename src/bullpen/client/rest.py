"""Requests to the REST interface, repeated when the server dies under them or is without its database.

A request whose answer was lost may have had its effect. Repeating it is safe: every POST keeps one
Idempotency-Key over all tries, the other methods say what shall be, not what to do.
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
from .errors import ConnectionLost, ServerNotRunning, refusal
from .http import ConnectFailed, ConnectionPool, OutgoingRequest
from .response import BodyTooLong, BrokenConnection, HttpResponse

Answer = TypeVar("Answer")

_LARGEST = 512 * 1024 * 1024  # bytes of an answer that is read as a whole
_STARTING = 503
_GONE = 404
_LONG = 7200.0  # seconds: the server ends a command after half an hour, and a copy after an hour


@dataclass(frozen=True)
class RestRequest:
    """One order or question, the same in every try."""

    method: str
    path: str
    body: Any = None
    query: Mapping[str, str] = field(default_factory=dict)
    key: str | None = None
    telling: frozenset[int] = frozenset()  # error statuses whose body is the answer all the same
    raw: bytes | None = None  # a body that is not JSON
    long: bool = False  # it takes as long as it takes: commands of a person, a large upload

    def __post_init__(self) -> None:
        if self.method == "POST" and self.key is None:
            object.__setattr__(self, "key", str(uuid.uuid4()))


class RestReply(NamedTuple):
    """An answer that is there as a whole."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def is_error(self) -> bool:
        return self.status >= 400


class _NoAnswer(Exception):
    """A try failed in a way that passes. `sent`: it may have had its effect."""

    def __init__(self, why: BullpenError, sent: bool) -> None:
        super().__init__(str(why))
        self.why = why
        self.sent = sent


class RestClient:
    """One pool of connections to wherever the server is."""

    def __init__(self, discovery: ServerDiscovery, patience: float) -> None:
        self.on_refusal: Callable[[BullpenError], None] = lambda _: None  # called once before a request waits
        self._discovery = discovery
        self._patience = patience
        self._server: ServerAddress | None = None
        self._pool: ConnectionPool | None = None
        self._met = False  # it has answered before: a refused connection is a restart, not an absence

    async def close(self) -> None:
        if self._pool is not None:
            await self._pool.close()
            self._pool = None

    async def call(self, answer: type[Answer], request: RestRequest, patience: float | None = None) -> Answer:
        """The answer as a value; with no patience, one try."""
        reply = await self._ask(request, self._patience if patience is None else patience)
        return _read(answer, request, reply)

    async def remove(self, answer: type[Answer], request: RestRequest) -> Answer | None:
        """The same of a DELETE; None when a try whose answer was lost has done it."""
        reply = await self._ask(request, self._patience)
        return None if reply.is_error else _read(answer, request, reply)

    async def order(self, request: RestRequest) -> None:
        """A request whose answer does not matter."""
        await self._ask(request, self._patience)

    @asynccontextmanager
    async def stream(self, request: RestRequest) -> AsyncIterator[HttpResponse]:
        """The answer while it arrives; not repeated."""
        try:
            pool, call = await self._prepare(request)
            async with pool.send(call) as response:
                if response.is_error:
                    raise _refusal(await _whole(request, response))
                yield response
        except (ConnectFailed, BrokenConnection) as error:
            raise self._absence(error) from None

    async def _ask(self, request: RestRequest, patience: float) -> RestReply:
        backoff = Backoff()
        deadline = clock.monotonic() + patience
        sent = told = False
        while True:
            began = clock.monotonic()
            try:
                reply = await self._try(request)
            except _NoAnswer as failed:
                sent = sent or failed.sent
                if request.long and failed.sent:
                    deadline += clock.monotonic() - began  # its absence tries one's patience, not its work
                left = deadline - clock.monotonic()
                if left <= 0 or not (sent or self._met):
                    raise failed.why from None
                if isinstance(failed.why, Unavailable) and not told:
                    told = True
                    self.on_refusal(failed.why)
                await asyncio.sleep(min(backoff.next(), left))
                continue
            done_before = sent and request.method == "DELETE" and reply.status == _GONE
            if reply.is_error and not done_before and reply.status not in request.telling:
                raise _refusal(reply)
            return reply

    async def _try(self, request: RestRequest) -> RestReply:
        try:
            pool, call = await self._prepare(request)
            async with pool.send(call) as response:
                reply = await _whole(request, response)
        except ServerNotRunning as error:
            raise _NoAnswer(error, sent=False) from None
        except (ConnectFailed, BrokenConnection) as error:
            raise _NoAnswer(self._absence(error), sent=isinstance(error, BrokenConnection)) from None
        self._met = True
        if reply.status == _STARTING and _STARTING not in request.telling:
            raise _NoAnswer(_refusal(reply), sent=False)
        return reply

    async def _prepare(self, request: RestRequest) -> tuple[ConnectionPool, OutgoingRequest]:
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
        call = OutgoingRequest(request.method, target, headers, body, _LONG if request.long else None)
        return await self._pool_for(server), call

    async def _pool_for(self, server: ServerAddress) -> ConnectionPool:
        if self._pool is None or self._server != server:
            await self.close()
            self._server = server
            self._pool = ConnectionPool(server.url, tls.context(server))
        return self._pool

    def _absence(self, error: ConnectFailed | BrokenConnection) -> BullpenError:
        if isinstance(error.__cause__, SSLCertVerificationError):
            return RemoteFault(f"the server's certificate is not trusted: {error.__cause__.verify_message}")
        if isinstance(error, ConnectFailed):
            return self._discovery.absence()
        return ConnectionLost("the server went away before it answered; see whether it runs: bullpen status")


def _read(answer: type[Answer], request: RestRequest, reply: RestReply) -> Answer:
    try:
        return msgspec.json.decode(reply.body, type=answer)
    except (msgspec.ValidationError, msgspec.DecodeError) as error:
        where = f"{request.method} {request.path}"
        raise RemoteFault(f"the server's answer to {where} makes no sense: {error}") from None


async def _whole(request: RestRequest, response: HttpResponse) -> RestReply:
    try:
        return RestReply(response.status, response.headers, await response.read(_LARGEST))
    except BodyTooLong:
        where = f"{request.method} {request.path}"
        raise RemoteFault(
            f"the server's answer to {where} is larger than {_LARGEST >> 20} MiB; ask for less at a time"
        ) from None


def _refusal(reply: RestReply) -> BullpenError:
    try:
        body = msgspec.json.decode(reply.body)
    except msgspec.DecodeError:
        body = None
    return refusal(reply.status, body, reply.headers)
