"""Requests to the REST interface, repeated when the server dies under them.

A request whose answer was lost may have had its effect. Repeating it is safe: every POST keeps one
Idempotency-Key over all tries, the other methods say what shall be, not what to do.
"""

import asyncio
import uuid
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

import httpx
import msgspec

from .. import __version__, clock
from ..domain.errors import BullpenError, RemoteFault
from . import tls
from .backoff import Backoff
from .discovery import Discovery, Server
from .errors import ConnectionLost, ServerNotRunning, refusal

Answer = TypeVar("Answer")

_TIMEOUT = httpx.Timeout(30, connect=5)
_STARTING = 503
_GONE = 404


@dataclass(frozen=True)
class Request:
    """One order or question, the same in every try."""

    method: str
    path: str
    body: Any = None
    query: Mapping[str, str] = field(default_factory=dict)
    key: str | None = None
    any_status: bool = False  # the body counts, whatever the status

    def __post_init__(self) -> None:
        if self.method == "POST" and self.key is None:
            object.__setattr__(self, "key", str(uuid.uuid4()))


class _NoAnswer(Exception):
    """A try failed in a way that passes. `sent`: it may have had its effect."""

    def __init__(self, why: BullpenError, sent: bool) -> None:
        super().__init__(str(why))
        self.why = why
        self.sent = sent


class Rest:
    """One pool of connections to wherever the server is."""

    def __init__(self, discovery: Discovery, patience: float) -> None:
        self._discovery = discovery
        self._patience = patience
        self._server: Server | None = None
        self._pool: httpx.AsyncClient | None = None
        self._met = False  # it has answered before: a refused connection is a restart, not an absence

    async def close(self) -> None:
        if self._pool is not None:
            await self._pool.aclose()
            self._pool = None

    async def call(self, answer: type[Answer], request: Request, patience: float | None = None) -> Answer:
        """The answer as a value; with no patience, one try."""
        response = await self._ask(request, self._patience if patience is None else patience)
        try:
            return msgspec.json.decode(response.content, type=answer)
        except (msgspec.ValidationError, msgspec.DecodeError) as error:
            where = f"{request.method} {request.path}"
            raise RemoteFault(f"the server's answer to {where} makes no sense: {error}") from None

    async def order(self, request: Request) -> None:
        """A request whose answer does not matter."""
        await self._ask(request, self._patience)

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[httpx.Response]:
        """The answer while it arrives; not repeated."""
        try:
            pool, built = await self._build(request)
            response = await pool.send(built, stream=True)
            try:
                if response.is_error:
                    await response.aread()
                    raise _refusal(response)
                yield response
            finally:
                await response.aclose()
        except httpx.TransportError as error:
            raise self._absence(error) from None

    async def _ask(self, request: Request, patience: float) -> httpx.Response:
        backoff = Backoff()
        deadline = clock.monotonic() + patience
        sent = False
        while True:
            try:
                response = await self._try(request)
            except _NoAnswer as failed:
                sent = sent or failed.sent
                left = deadline - clock.monotonic()
                if left <= 0 or not (sent or self._met):
                    raise failed.why from None
                await asyncio.sleep(min(backoff.next(), left))
                continue
            done_before = sent and request.method == "DELETE" and response.status_code == _GONE
            if response.is_error and not done_before and not request.any_status:
                raise _refusal(response)
            return response

    async def _try(self, request: Request) -> httpx.Response:
        try:
            pool, built = await self._build(request)
            response = await pool.send(built)
        except ServerNotRunning as error:
            raise _NoAnswer(error, sent=False) from None
        except httpx.TransportError as error:
            refused = isinstance(error, httpx.ConnectError | httpx.ConnectTimeout)
            raise _NoAnswer(self._absence(error), sent=not refused) from None
        self._met = True
        if response.status_code == _STARTING and not request.any_status:
            raise _NoAnswer(_refusal(response), sent=False)
        return response

    async def _build(self, request: Request) -> tuple[httpx.AsyncClient, httpx.Request]:
        server = self._discovery.find()
        pool = await self._pool_for(server)
        headers = {"Authorization": f"Bearer {server.token}"}
        content = None
        if request.key is not None:
            headers["Idempotency-Key"] = request.key
        if request.body is not None:
            headers["Content-Type"] = "application/json"
            content = msgspec.json.encode(request.body)
        url = server.url + request.path
        built = pool.build_request(
            request.method, url, params=request.query, headers=headers, content=content
        )
        return pool, built

    async def _pool_for(self, server: Server) -> httpx.AsyncClient:
        if self._pool is None or self._server != server:
            await self.close()
            self._server = server
            # No proxy from the environment: it would be shown the token.
            self._pool = httpx.AsyncClient(
                verify=tls.context(server),
                trust_env=False,
                timeout=_TIMEOUT,
                headers={"User-Agent": f"bullpen/{__version__}"},
            )
        return self._pool

    def _absence(self, error: httpx.TransportError) -> BullpenError:
        if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
            if "CERTIFICATE_VERIFY_FAILED" in str(error):
                return RemoteFault(f"the server's certificate is not trusted: {error}")
            return self._discovery.absence()
        return ConnectionLost("the server went away before it answered; see whether it runs: bullpen status")


def _refusal(response: httpx.Response) -> BullpenError:
    try:
        body = msgspec.json.decode(response.content)
    except msgspec.DecodeError:
        body = None
    return refusal(response.status_code, body, response.headers)
