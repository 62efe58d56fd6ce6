"""Our HTTP against servers that speak it well, badly or not at all."""

import asyncio

import pytest

from bullpen.client import Client
from bullpen.client.http import ConnectFailed, ConnectionPool, OutgoingRequest
from bullpen.client.response import BodyTooLong, BrokenConnection
from bullpen.domain.errors import Invalid
from support.scripted_http_server import scripted_http
from support.server import Server

GET = OutgoingRequest("GET", "/", {})
HELLO = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


async def body_of(pool: ConnectionPool, call: OutgoingRequest = GET, most: int = 1 << 20) -> bytes:
    async with pool.send(call) as response:
        return await response.read(most)


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


async def test_an_answer_without_a_body_has_none() -> None:
    async with scripted_http(b"HTTP/1.1 204 No Content\r\n\r\n", HELLO) as (other, pool):
        assert await body_of(pool) == b""
        assert await body_of(pool) == b"hello"
        assert other.connections == 1


async def test_header_names_are_in_lower_case() -> None:
    async with (
        scripted_http(b"HTTP/1.1 429 Slow\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n") as (_, pool),
        pool.send(GET) as response,
    ):
        assert (response.status, response.is_error, response.headers["retry-after"]) == (429, True, "7")


@pytest.mark.parametrize("answer", [HELLO, CHUNKED + b"5\r\nhello\r\n0\r\n\r\n"], ids=["a length", "chunks"])
async def test_requests_one_after_another_share_a_connection(answer: bytes) -> None:
    async with scripted_http(answer, answer, answer) as (other, pool):
        for _ in range(3):
            assert await body_of(pool) == b"hello"
        assert other.connections == 1


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello",
        b"HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        HELLO + b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged",
    ],
    ids=["it says so", "version 1.0", "more came than was asked for"],
)
async def test_a_connection_is_not_used_again_when(answer: bytes) -> None:
    async with scripted_http(answer, HELLO) as (other, pool):
        assert await body_of(pool) == b"hello"
        assert await body_of(pool) == b"hello"
        assert other.connections == 2


async def test_a_connection_is_not_used_again_when_its_body_was_not_read() -> None:
    async with scripted_http(HELLO[:-1], HELLO) as (other, pool):
        async with pool.send(GET):
            pass
        assert await body_of(pool) == b"hello"
        assert other.connections == 2


async def test_requests_at_once_do_not_mix() -> None:
    async with scripted_http(*[HELLO] * 30) as (other, pool):
        assert set(await asyncio.gather(*(body_of(pool) for _ in range(30)))) == {b"hello"}
        assert len(other.requests) == 30


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
        "nothing",
        "half a head",
        "half a body",
        "half the chunks",
        "a chunk of nonsense",
        "two lengths of two kinds",
        "two lengths",
        "another protocol instead",
        "another protocol",
        "a head without end",
    ],
)
async def test_an_answer_is_broken_when_it_is(answer: bytes) -> None:
    async with scripted_http(answer) as (_, pool):
        with pytest.raises(BrokenConnection):
            await body_of(pool)


async def test_silence_is_given_up() -> None:
    async with scripted_http(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel", b"") as (other, _):
        pool = ConnectionPool(other.url, None, stall_seconds=0.05)
        with pytest.raises(BrokenConnection):
            await body_of(pool)


async def test_a_body_longer_than_its_reader_takes_is_left_alone() -> None:
    async with scripted_http(HELLO) as (_, pool):
        with pytest.raises(BodyTooLong):
            await body_of(pool, most=4)


async def test_nobody_there_means_nothing_was_sent() -> None:
    async with scripted_http() as (other, _):
        pass
    with pytest.raises(ConnectFailed):
        await body_of(ConnectionPool(other.url, None))


@pytest.mark.parametrize(
    "call",
    [
        OutgoingRequest("GET", "/a b", {}),
        OutgoingRequest("GET", "/a\r\nX: y", {}),
        OutgoingRequest("GET", "/", {"X": "a\r\nY: b"}),
    ],
)
async def test_nothing_can_be_smuggled_into_a_request(call: OutgoingRequest) -> None:
    async with scripted_http(HELLO) as (other, pool):
        with pytest.raises(Invalid):
            await body_of(pool, call)
        assert other.requests == []


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("http://me:secret@127.0.0.1:{port}/base", "127.0.0.1:{port}"),
        ("http://LOCALHOST:{port}", "localhost:{port}"),
    ],
)
async def test_a_request_says_which_host_is_meant(url: str, host: str) -> None:
    async with scripted_http(HELLO) as (other, _):
        port = other.url.rpartition(":")[2]
        await body_of(ConnectionPool(url.format(port=port), None))
        assert f"Host: {host.format(port=port)}\r\n".encode() in other.requests[0]
        assert b"secret" not in other.requests[0]


async def test_a_body_goes_out_with_its_length() -> None:
    async with scripted_http(HELLO, HELLO, HELLO) as (other, pool):
        await body_of(pool, OutgoingRequest("POST", "/x", {}))
        await body_of(pool, OutgoingRequest("POST", "/x", {}, b""))
        await body_of(pool)
        lengths = [b"Content-Length: 0\r\n" in request for request in other.requests]
        assert lengths == [True, True, False]


async def test_a_proxy_of_the_environment_is_not_shown_the_token(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with scripted_http(HELLO) as (proxy, _):
        for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url)
        async with Client(server.url, server.token) as client:
            assert await client.sessions() == []
        assert proxy.connections == 0
