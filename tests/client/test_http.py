"""The HTTP client with servers that send valid, invalid or no responses."""

import asyncio

import pytest

from bullpen.client import Client
from bullpen.client.http import ConnectFailed, ConnectionPool, OutgoingRequest
from bullpen.client.response import BodyTooLong, BrokenConnection
from bullpen.domain.errors import Invalid
from support.intervals import shortened
from support.scripted_http_server import scripted_http
from support.server import Server

GET = OutgoingRequest("GET", "/", {})
HELLO = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


async def body_of(pool: ConnectionPool, request: OutgoingRequest = GET, max_bytes: int = 1 << 20) -> bytes:
    async with pool.send(request) as response:
        return await response.read(max_bytes)


@pytest.mark.parametrize(
    "answer",
    [
        HELLO,
        CHUNKED + b"2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\nTrailer: 1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n\r\nhello",
        b"HTTP/1.0 200 OK\r\n\r\nhello",
        b"HTTP/1.1 100 Continue\r\n\r\n" + HELLO,
        b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
    ],
    ids=["a length", "chunks", "the end of the connection", "version 1.0", "continue", "early hints"],
)
async def test_a_body_is_read_to_its_end(answer: bytes) -> None:
    async with scripted_http(answer) as (_, pool):
        assert await body_of(pool) == b"hello"


async def test_a_response_without_a_body_is_empty() -> None:
    async with scripted_http(b"HTTP/1.1 204 No Content\r\n\r\n", HELLO) as (fake_server, pool):
        assert await body_of(pool) == b""
        assert await body_of(pool) == b"hello"
        assert fake_server.connections == 1


async def test_header_names_are_in_lower_case() -> None:
    async with (
        scripted_http(b"HTTP/1.1 429 Slow\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n") as (_, pool),
        pool.send(GET) as response,
    ):
        assert (response.status, response.is_error, response.headers["retry-after"]) == (429, True, "7")


@pytest.mark.parametrize("answer", [HELLO, CHUNKED + b"5\r\nhello\r\n0\r\n\r\n"], ids=["a length", "chunks"])
async def test_consecutive_requests_share_a_connection(answer: bytes) -> None:
    async with scripted_http(answer, answer, answer) as (fake_server, pool):
        for _ in range(3):
            assert await body_of(pool) == b"hello"
        assert fake_server.connections == 1


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello",
        b"HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        HELLO + b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged",
    ],
    ids=["a header", "version 1.0", "bytes after the response"],
)
async def test_a_connection_is_not_used_again_after(answer: bytes) -> None:
    async with scripted_http(answer, HELLO) as (fake_server, pool):
        assert await body_of(pool) == b"hello"
        assert await body_of(pool) == b"hello"
        assert fake_server.connections == 2


async def test_a_connection_is_not_used_again_when_its_body_was_not_read() -> None:
    async with scripted_http(HELLO[:-1], HELLO) as (fake_server, pool):
        async with pool.send(GET):
            pass
        assert await body_of(pool) == b"hello"
        assert fake_server.connections == 2


async def test_concurrent_requests_do_not_mix() -> None:
    async with scripted_http(*[HELLO] * 30) as (fake_server, pool):
        assert set(await asyncio.gather(*(body_of(pool) for _ in range(30)))) == {b"hello"}
        assert len(fake_server.requests) == 30


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"HTTP/1.1 200 OK\r\nContent-Le",
        b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello",
        CHUNKED + b"5\r\nhello\r\n",
        CHUNKED + b"zz\r\nhello\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 4\r\n\r\nhello",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\nhello",
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 50_000,
    ],
    ids=[
        "no bytes",
        "half a head",
        "half a body",
        "half the chunks",
        "an invalid chunk size",
        "a length and chunks",
        "two different lengths",
        "an upgrade",
        "another protocol",
        "an endless head",
    ],
)
async def test_an_invalid_response_is_an_error(answer: bytes) -> None:
    async with scripted_http(answer) as (_, pool):
        with pytest.raises(BrokenConnection):
            await body_of(pool)


async def test_a_silent_server_is_given_up() -> None:
    async with scripted_http(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel", b"") as (_, pool):
        with shortened(stall=0.05), pytest.raises(BrokenConnection):
            await body_of(pool)


async def test_a_body_longer_than_the_limit_is_not_read() -> None:
    async with scripted_http(HELLO) as (_, pool):
        with pytest.raises(BodyTooLong):
            await body_of(pool, max_bytes=4)


async def test_a_refused_connection_means_that_no_request_was_sent() -> None:
    async with scripted_http() as (fake_server, _):
        pass
    with pytest.raises(ConnectFailed):
        await body_of(ConnectionPool(fake_server.url, None))


@pytest.mark.parametrize(
    "outgoing",
    [
        OutgoingRequest("GET", "/a b", {}),
        OutgoingRequest("GET", "/a\r\nX: y", {}),
        OutgoingRequest("GET", "/", {"X": "a\r\nY: b"}),
    ],
)
async def test_headers_cannot_be_injected_into_a_request(outgoing: OutgoingRequest) -> None:
    async with scripted_http(HELLO) as (fake_server, pool):
        with pytest.raises(Invalid):
            await body_of(pool, outgoing)
        assert fake_server.requests == []


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("http://me:secret@127.0.0.1:{port}/base", "127.0.0.1:{port}"),
        ("http://LOCALHOST:{port}", "localhost:{port}"),
    ],
)
async def test_a_request_has_a_host_header_without_credentials(url: str, host: str) -> None:
    async with scripted_http(HELLO) as (fake_server, _):
        port = fake_server.url.rpartition(":")[2]
        await body_of(ConnectionPool(url.format(port=port), None))
        assert f"Host: {host.format(port=port)}\r\n".encode() in fake_server.requests[0]
        assert b"secret" not in fake_server.requests[0]


async def test_a_request_body_is_sent_with_its_length() -> None:
    async with scripted_http(HELLO, HELLO, HELLO) as (fake_server, pool):
        await body_of(pool, OutgoingRequest("POST", "/x", {}))
        await body_of(pool, OutgoingRequest("POST", "/x", {}, b""))
        await body_of(pool)
        lengths = [b"Content-Length: 0\r\n" in sent for sent in fake_server.requests]
        assert lengths == [True, True, False]


async def test_no_token_is_sent_to_a_proxy_of_the_environment(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with scripted_http(HELLO) as (proxy, _):
        for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url)
        async with Client(server.url, server.token) as client:
            assert await client.sessions() == []
        assert proxy.connections == 0
