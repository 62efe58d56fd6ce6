"""What a client without a credential can hold: header bytes, time, connections (issue 23, item 4)."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, ExitStack
from itertools import pairwise
from pathlib import Path

import pytest
from websockets.asyncio.client import connect

from bullpen.web.connections import UnauthenticatedConnections
from bullpen.web.listener import ConnectionListener
from support.server import SECONDS, Server
from support.tls import Certificate, TlsServer
from web.people import log_in
from web.raw import Raw, credential, head, raw

DESCRIPTORS = 256
STRANGERS = 300
FEW_DESCRIPTORS = ("prlimit", f"--nofile={DESCRIPTORS}:{DESCRIPTORS}")
UPGRADE = (
    "Upgrade: websocket",
    "Connection: Upgrade",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
)
CHUNKED_LOGIN = ("POST /api/login", "Content-Type: application/json", "Transfer-Encoding: chunked")


@pytest.fixture
async def hasty(tmp_path: Path, workspace: Path) -> AsyncIterator[Server]:
    """A server that waits one second for a request."""
    server = Server(tmp_path / "home", workspace, {"BULLPEN_REQUEST_TIMEOUT": "1"})
    await server.start()
    yield server
    await server.close()


@pytest.fixture
async def scarce(tmp_path: Path, workspace: Path) -> AsyncIterator[Server]:
    """A server with few file descriptors."""
    server = Server(tmp_path / "home", workspace)
    await server.start(prefix=FEW_DESCRIPTORS)
    yield server
    await server.close()


def error_of(body: bytes) -> str:
    error: str = json.loads(body)["error"]
    return error


def descriptors(server: Server) -> int:
    return len(list(Path(f"/proc/{server.pid}/fd").iterdir()))


async def metric(server: Server, name: str) -> float:
    lines = (await server.http.get("/metrics")).text.splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith(f"{name} "))


# -- header bytes -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("begin", "more"),
    [
        ("GET /", b"x: %s\r\n" % (b"y" * 8000)),
        ("GET /", b"x"),
        ("", b"G"),
        ("", b"\r\n"),
    ],
    ids=["fields", "a name", "a method", "empty lines"],
)
async def test_headers_without_end_are_refused(server: Server, begin: str, more: bytes) -> None:
    async with raw(server) as connection:
        await connection.send(head(server, begin) if begin else b"")
        assert (await connection.flood(more * 50))[0] in (400, 431)


async def test_a_field_without_end_is_refused_with_431_and_the_reason(server: Server) -> None:
    async with raw(server) as connection:
        await connection.send(head(server, "GET /") + b"x: ")
        status, body = await connection.flood(b"y" * 8000)
        assert (status, error_of(body)) == (431, "headers_too_large")


async def test_a_target_without_end_is_refused_with_431(server: Server) -> None:
    async with raw(server) as connection:
        await connection.send(b"GET /")
        assert (await connection.flood(b"y" * 8000))[0] == 431


async def test_a_target_of_16_kib_is_read_and_a_longer_one_refused(server: Server) -> None:
    for length, status in ((16 << 10, 404), ((16 << 10) + 1, 431)):
        async with raw(server) as connection:
            await connection.send(head(server, f"GET /{'x' * (length - 1)}") + b"\r\n")
            assert await connection.status() == status


async def test_headers_of_60_kib_are_read_and_of_65_kib_refused(server: Server) -> None:
    for kib, status in ((60, 200), (65, 431)):
        async with raw(server) as connection:
            field = f"x: {'y' * (kib << 10)}"
            await connection.send(head(server, "GET /api/health", field) + b"\r\n")
            assert await connection.status() == status


async def test_a_hundred_fields_are_read_and_more_are_refused(server: Server) -> None:
    for count, status in ((99, 200), (100, 431)):
        async with raw(server) as connection:
            fields = (f"x{number}: y" for number in range(count))
            await connection.send(head(server, "GET /api/health", *fields) + b"\r\n")
            assert await connection.status() == status


@pytest.mark.parametrize(
    "begin",
    [("GET /api/health",), (*CHUNKED_LOGIN, "", "1\r\n{\r\n0")],
    ids=["fields", "trailers"],
)
async def test_the_first_field_too_many_is_refused_before_the_others_arrive(
    server: Server, begin: tuple[str, ...]
) -> None:
    async with raw(server) as connection:
        await connection.send(head(server, *begin) + b"x: y\r\n" * 101)
        status, body = await connection.answer()
        assert (status, error_of(body)) == (431, "headers_too_large")


async def test_a_trailer_does_not_pass_for_a_header(server: Server) -> None:
    chunked = head(server, "GET /api/sessions", "Transfer-Encoding: chunked") + b"\r\n1\r\n{\r\n0\r\n"
    async with raw(server) as connection:
        await connection.send(chunked + f"{credential(server)}\r\n\r\n".encode())
        assert await connection.status() == 401


@pytest.mark.parametrize(
    ("begin", "more"),
    [(b"1;x=", b"y" * 8000), (b"1\r\n{\r\n0\r\n", b"x: %s\r\n" % (b"y" * 8000))],
    ids=["chunk extension", "trailers"],
)
async def test_framing_of_a_body_without_end_is_refused(server: Server, begin: bytes, more: bytes) -> None:
    async with raw(server) as connection:
        await connection.send(head(server, *CHUNKED_LOGIN) + b"\r\n" + begin)
        assert (await connection.flood(more))[0] == 431


@pytest.mark.parametrize(
    ("target", "field", "status"),
    [
        ("/ws/dashboard", f"Cookie: {'x' * 9000}", 431),
        ("/ws/\u00ff", "x: y", 400),
        ("/ws/dashboard", "x: \x01", 400),
        ("/ws/dashboard", "Sec-WebSocket-Key: BBBBBBBBBBBBBBBBBBBBBB==", 400),
    ],
)
async def test_an_upgrade_that_cannot_be_read_is_answered(
    server: Server, target: str, field: str, status: int
) -> None:
    async with raw(server) as connection:
        request = head(server, f"GET {target}", *UPGRADE, field).decode().encode("latin-1")
        await connection.send(request + b"\r\n")
        assert await connection.status() == status
    await server.call("GET", "/api/health")  # by then the line is written
    assert "Traceback" not in server.output()
    (line,) = (server.home / "logs" / "audit.log").read_text().splitlines()
    assert json.loads(line)["status"] == status


async def test_a_pipelined_request_is_dropped_and_the_first_one_answered(server: Server) -> None:
    async with raw(server) as connection:
        await connection.send((head(server, "GET /api/health") + b"\r\n") * 5000)
        assert (await connection.rest()).count(b"HTTP/1.1 200 OK") == 1
    assert "Traceback" not in server.output()


# -- time -------------------------------------------------------------------------------------------


async def test_unfinished_headers_are_answered_with_408_and_closed(hasty: Server) -> None:
    async with raw(hasty) as connection:
        await connection.send(head(hasty, "GET /api/health"))
        status, body = await connection.answer()
        assert (status, error_of(body)) == (408, "request_timeout")
        assert await connection.rest() == b""


async def test_an_unfinished_body_without_a_credential_is_answered_with_408(hasty: Server) -> None:
    async with raw(hasty) as connection:
        fields = ("Content-Type: application/json", "Content-Length: 100")
        await connection.send(head(hasty, "POST /api/login", *fields) + b"\r\n{")
        status, body = await connection.answer()
        assert (status, error_of(body)) == (408, "request_timeout")
        assert await connection.rest() == b""
    await hasty.call("GET", "/api/health")  # by then the line is written
    audit = (hasty.home / "logs" / "audit.log").read_text().splitlines()
    told = [(line["path"], line["status"]) for line in map(json.loads, audit)]
    assert told == [("/api/login", 408)]


async def test_a_connection_without_a_request_is_closed(hasty: Server) -> None:
    async with raw(hasty) as connection:
        assert await connection.rest() == b""


async def test_the_body_of_a_refused_request_is_not_awaited(hasty: Server) -> None:
    async with raw(hasty) as connection:
        await connection.send(head(hasty, "POST /api/sessions", "Content-Length: 1000000") + b"\r\n{")
        assert await connection.status() == 401
        await connection.rest()


async def deadline_of_another(server: Server) -> None:
    """Wait until a request that begins now has timed out: so have all that began before."""
    async with raw(server) as connection:
        await connection.send(head(server, "GET /api/health"))
        assert await connection.status() == 408


async def test_a_body_with_a_credential_may_take_longer(hasty: Server) -> None:
    body = json.dumps({"locationPath": str(hasty.workspace)}).encode()
    fields = (credential(hasty), "Content-Type: application/json", f"Content-Length: {len(body)}")
    async with raw(hasty) as connection:
        await connection.send(head(hasty, "POST /api/sessions", *fields) + b"\r\n" + body[:5])
        await deadline_of_another(hasty)
        await connection.send(body[5:])
        assert await connection.status() == 201


async def test_headers_after_a_request_with_a_credential_have_the_same_deadline(hasty: Server) -> None:
    async with raw(hasty) as connection:
        await connection.send(head(hasty, "GET /api/health", credential(hasty)) + b"\r\n")
        assert await connection.status() == 200
        await connection.send(head(hasty, "GET /api/health", credential(hasty)))
        assert await connection.status() == 408


async def test_a_websocket_outlives_the_deadline(hasty: Server) -> None:
    async with hasty.socket("/ws/dashboard") as ws:
        await deadline_of_another(hasty)
        await (await ws.ping())


async def test_an_unfinished_tls_handshake_is_closed(
    tmp_path: Path, workspace: Path, certificate: Certificate
) -> None:
    server = TlsServer(tmp_path / "home", workspace, certificate)
    server.set(BULLPEN_REQUEST_TIMEOUT="1")
    await server.start()
    try:
        async with raw(server) as connection:
            await connection.send(b"\x16\x03\x01\x02\x00\x01")  # the beginning of a ClientHello
            assert await connection.rest() == b""
        async with raw(server, server.context) as connection:
            await connection.send(head(server, "GET /api/health"))
            assert await connection.status() == 408
    finally:
        await server.close()


# -- connections ------------------------------------------------------------------------------------


async def crowd(server: Server, stack: AsyncExitStack, data: bytes, count: int = STRANGERS) -> list[Raw]:
    strangers = [await stack.enter_async_context(raw(server)) for _ in range(count)]
    for stranger in strangers:
        await stranger.send(data)
    return strangers


async def assert_the_owner_is_served(server: Server) -> None:
    """The owner's requests, each on a new connection, and a new terminal with a viewer."""
    for _ in range(3):
        async with raw(server) as connection:
            await connection.send(head(server, "GET /api/sessions", credential(server)) + b"\r\n")
            assert await connection.status() == 200
    session = await server.new_session()
    worker = await server.new_terminal(session["id"])
    async with server.socket(f"/ws/session/{session['id']}/worker/{worker['id']}") as ws:
        async with asyncio.timeout(SECONDS):
            assert json.loads(await ws.recv())


@pytest.mark.parametrize(
    "unfinished",
    [b"", b"GET / HTTP/1.1\r\nx: y", b"POST /api/login HTTP/1.1\r\n"],
    ids=["idle", "field", "line"],
)
async def test_a_crowd_of_strangers_does_not_lock_the_owner_out(scarce: Server, unfinished: bytes) -> None:
    async with AsyncExitStack() as stack:
        await crowd(scarce, stack, unfinished)
        await assert_the_owner_is_served(scarce)
        assert descriptors(scarce) <= DESCRIPTORS * 7 // 8
        assert await metric(scarce, "bullpen_evicted_connections_total") > 0


async def test_strangers_leave_the_last_quarter_of_the_descriptors(scarce: Server) -> None:
    async with AsyncExitStack() as stack:
        await crowd(scarce, stack, b"")
        await metric(scarce, "bullpen_unauthenticated_connections")
        assert descriptors(scarce) <= DESCRIPTORS * 3 // 4 + 2  # the connection that asked, and its successor


async def test_what_was_open_with_a_credential_stays_open_beside_a_crowd(scarce: Server) -> None:
    async with scarce.socket("/ws/dashboard") as ws, raw(scarce) as kept, AsyncExitStack() as stack:
        await ws.recv()
        await kept.send(head(scarce, "POST /api/sessions", credential(scarce), "Content-Length: 2") + b"\r\n")
        await scarce.call("GET", "/api/health")
        await crowd(scarce, stack, b"GET")
        await (await ws.ping())
        await kept.send(b"{}")
        assert await kept.status() in (201, 400)


async def test_sockets_that_never_show_their_second_secret_count_as_strangers(scarce: Server) -> None:
    browser = await log_in(scarce)
    headers = {**browser.cookie, "Origin": scarce.url}
    url = f"ws://127.0.0.1:{scarce.port}/ws/dashboard"
    async with connect(url, additional_headers=headers, proxy=None) as ws:
        assert await metric(scarce, "bullpen_unauthenticated_connections") == 1
        await ws.send(json.dumps({"type": "auth", "secret": browser.secret}))
        assert json.loads(await ws.recv())["type"] == "sessions"
        assert await metric(scarce, "bullpen_unauthenticated_connections") == 0


async def test_unfinished_tls_handshakes_do_not_lock_the_owner_out(
    tmp_path: Path, workspace: Path, certificate: Certificate
) -> None:
    server = TlsServer(tmp_path / "home", workspace, certificate)
    await server.start(prefix=FEW_DESCRIPTORS)
    try:
        async with AsyncExitStack() as stack:
            strangers = await crowd(server, stack, b"\x16\x03\x01")
            async with raw(server, server.context) as connection:
                await connection.send(head(server, "GET /api/sessions", credential(server)) + b"\r\n")
                assert await connection.status() == 200
            assert descriptors(server) <= DESCRIPTORS * 7 // 8
            assert await strangers[0].rest() == b""
    finally:
        await server.close()


async def test_open_connections_are_served_between_two_new_ones() -> None:
    connections, transports = UnauthenticatedConnections(SECONDS, DESCRIPTORS), []

    class Kept(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            transports.append(transport)

    with socket.create_server(("127.0.0.1", 0)) as listening, ExitStack() as clients:
        listening.setblocking(False)
        for _ in range(20):
            clients.enter_context(socket.create_connection(listening.getsockname()))
        listener = ConnectionListener(listening, connections, lambda _: Kept(), None)
        listener.start()
        counts = [0]
        async with asyncio.timeout(SECONDS):
            while len(transports) < 20:
                await asyncio.sleep(0)  # one turn of the event loop
                counts.append(len(connections))
        listener.close()
        for transport in transports:
            transport.close()
    assert max(after - before for before, after in pairwise(counts)) == 1


async def test_a_crowd_of_strangers_is_told_in_the_log_once(scarce: Server) -> None:
    async with AsyncExitStack() as stack:
        await crowd(scarce, stack, b"GET")
        await scarce.call("GET", "/api/health")
    lines = (scarce.home / "logs" / "server.log").read_text().splitlines()
    events = [json.loads(line)["event"] for line in lines]
    assert events.count("closed the oldest connections without a credential") == 1
