"""Bodies and frames that are too long, compressed or nested too deeply take little memory."""

import asyncio
import contextlib
import gzip
import json
import os
import socket
import struct
import zlib
from collections.abc import AsyncIterator

import pytest
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed

from support.memory import peak, reset_peak
from support.server import Server

pytestmark = pytest.mark.asyncio(loop_scope="session")

MIB = 1 << 20
LARGEST_FRAME = 16 * MIB
JSON = {"Content-Type": "application/json"}


@pytest.fixture
async def memory_checked_server(shared_server: Server) -> AsyncIterator[Server]:
    """The shared server; fail if its memory use grew by 64 MiB at any moment of the test."""
    before = reset_peak(shared_server.pid)
    yield shared_server
    assert peak(shared_server.pid) - before < 64 * MIB


async def sessions(server: Server) -> int:
    total: int = (await server.call("GET", "/api/sessions"))["total"]
    return total


@pytest.mark.parametrize("path", ["/api/sessions", "/api/login", "/api/tokens"])
async def test_a_body_that_is_too_long_is_refused(memory_checked_server: Server, path: str) -> None:
    before = await sessions(memory_checked_server)
    body = b'{"title": "%s"}' % (b"x" * 2 * MIB)
    answer = await memory_checked_server.http.post(path, content=body, headers=JSON)
    assert (answer.status_code, answer.json()["error"]) == (413, "too_large")
    assert await sessions(memory_checked_server) == before


async def test_an_endless_body_is_refused_when_it_is_too_long(memory_checked_server: Server) -> None:
    sent = 0

    async def pieces() -> AsyncIterator[bytes]:
        nonlocal sent
        yield b'{"title": "'
        for _ in range(256):
            sent += MIB
            yield b"x" * MIB

    before = await sessions(memory_checked_server)
    answer = await memory_checked_server.http.post("/api/sessions", content=pieces(), headers=JSON)
    assert (answer.status_code, answer.json()["error"]) == (413, "too_large")
    assert await sessions(memory_checked_server) == before


async def test_a_body_with_a_huge_length_is_refused_before_it_arrives(memory_checked_server: Server) -> None:
    with socket.create_connection(("127.0.0.1", memory_checked_server.port), 10) as connection:
        head = f"POST /api/sessions HTTP/1.1\r\nHost: 127.0.0.1:{memory_checked_server.port}\r\n"
        head += (
            f"Authorization: Bearer {memory_checked_server.token}\r\nContent-Length: 10000000000000\r\n\r\n"
        )
        connection.sendall(head.encode())
        assert connection.recv(1000).startswith(b"HTTP/1.1 413 ")


async def test_a_body_of_the_maximum_length_is_accepted(shared_server: Server) -> None:
    body = json.dumps({"title": "fits"}).ljust(MIB)
    assert (await shared_server.http.post("/api/sessions", content=body, headers=JSON)).status_code == 201


async def test_a_compressed_body_is_not_unpacked(memory_checked_server: Server) -> None:
    before = await sessions(memory_checked_server)
    bomb = gzip.compress(b'{"title": "' + b"x" * (128 * MIB) + b'"}', compresslevel=1)
    for encoding in ("gzip", "deflate", "br"):
        headers = JSON | {"Content-Encoding": encoding}
        assert (
            await memory_checked_server.http.post("/api/sessions", content=bomb, headers=headers)
        ).status_code == 400
    assert await sessions(memory_checked_server) == before


@pytest.mark.parametrize("body", [b"[" * 200_000, b'{"title":' * 100_000, b"\xff\xfe", b"{", b"null", b"7"])
async def test_a_malformed_body_is_invalid(memory_checked_server: Server, body: bytes) -> None:
    answer = await memory_checked_server.http.post("/api/sessions", content=body, headers=JSON)
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid")


def frame(payload: bytes, *, opcode: int = 1, compressed: bool = False, declared: int | None = None) -> bytes:
    """Return an encoded and masked frame; `declared` replaces its real length."""
    first = 0x80 | (0x40 if compressed else 0) | opcode
    mask = os.urandom(4)
    masked = bytes(byte ^ mask[n % 4] for n, byte in enumerate(payload))
    return (
        struct.pack(">BBQ", first, 0x80 | 127, len(payload) if declared is None else declared) + mask + masked
    )


async def closed_with(ws: ClientConnection) -> int | None:
    with pytest.raises(ConnectionClosed):
        while True:
            await ws.recv()
    return ws.close_code


async def test_no_socket_is_compressed_and_a_compressed_frame_is_not_unpacked(
    memory_checked_server: Server,
) -> None:
    packer = zlib.compressobj(1, zlib.DEFLATED, -15)
    bomb = packer.compress(b"x" * (128 * MIB)) + packer.flush(zlib.Z_SYNC_FLUSH)
    async with memory_checked_server.socket("/ws/dashboard", compression="deflate") as ws:
        assert ws.response is not None
        assert "Sec-WebSocket-Extensions" not in ws.response.headers
        ws.transport.write(frame(bomb[:-4], compressed=True))
        assert await closed_with(ws) == 1002


async def test_a_frame_with_a_huge_length_is_refused_before_it_arrives(memory_checked_server: Server) -> None:
    for size in (LARGEST_FRAME + 1, 1 << 40):
        async with memory_checked_server.socket("/ws/dashboard") as ws:
            ws.transport.write(frame(b"", declared=size))
            assert await closed_with(ws) == 1009


async def test_a_fragmented_message_is_refused_when_it_is_too_long(memory_checked_server: Server) -> None:
    async with memory_checked_server.socket("/ws/dashboard") as ws:
        with contextlib.suppress(ConnectionClosed):  # the server may close the socket during the send
            await ws.send(["x" * MIB] * 64)
        assert await closed_with(ws) == 1009


async def test_a_client_that_keeps_sending_still_receives_the_close_code(
    memory_checked_server: Server,
) -> None:
    async with memory_checked_server.socket("/ws/dashboard") as ws:
        ws.transport.pause_reading()
        sock = ws.transport.get_extra_info("socket")
        with socket.socket(fileno=os.dup(sock.fileno())) as plain_socket:
            plain_socket.settimeout(10)
            await asyncio.to_thread(plain_socket.sendall, frame(b"x", declared=LARGEST_FRAME + 1))
            for _ in range(64):
                await asyncio.to_thread(plain_socket.sendall, bytes(MIB))
        ws.transport.resume_reading()
        assert await closed_with(ws) == 1009


async def test_a_header_that_is_too_long_is_refused(memory_checked_server: Server) -> None:
    with socket.create_connection(("127.0.0.1", memory_checked_server.port), 10) as connection:
        head = f"GET /api/sessions HTTP/1.1\r\nHost: 127.0.0.1:{memory_checked_server.port}\r\n"
        try:
            connection.sendall(f"{head}Authorization: Bearer {'x' * 2 * MIB}\r\n\r\n".encode())
            status = connection.recv(1000).split()[1]
        except ConnectionError:
            status = b"closed"
    assert status in (b"400", b"401", b"431", b"closed")
