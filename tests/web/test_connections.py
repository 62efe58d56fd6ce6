"""Limits for clients without a credential: header bytes, time and open connections."""

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
from web.clients import log_in
from web.raw_connection import RawConnection, authorization_field, open_raw, request_head

DESCRIPTORS = 256
MANY_CONNECTIONS = 300
UPGRADE = (
    "Upgrade: websocket",
    "Connection: Upgrade",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
)
CHUNKED_LOGIN = ("POST /api/login", "Content-Type: application/json", "Transfer-Encoding: chunked")


@pytest.fixture
async def short_timeout_server(tmp_path: Path, workspace: Path) -> AsyncIterator[Server]:
    """A server that waits one second for a request."""
    server = Server(tmp_path / "home", workspace, {"BULLPEN_REQUEST_TIMEOUT": "1"})
    await server.start()
    yield server
    await server.close()


@pytest.fixture
async def few_descriptors_server(tmp_path: Path, workspace: Path) -> AsyncIterator[Server]:
    """A server with few file descriptors."""
    server = Server(tmp_path / "home", workspace)
    await server.start(descriptors=DESCRIPTORS)
    yield server
    await server.close()


def error_of(body: bytes) -> str:
    error: str = json.loads(body)["error"]
    return error


def open_descriptors(server: Server) -> int:
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
async def test_endless_headers_are_refused(server: Server, begin: str, more: bytes) -> None:
    async with open_raw(server) as connection:
        await connection.send(request_head(server, begin) if begin else b"")
        assert (await connection.send_until_answered(more * 50))[0] in (400, 431)


async def test_an_endless_field_is_refused_with_431_and_the_reason(server: Server) -> None:
    async with open_raw(server) as connection:
        await connection.send(request_head(server, "GET /") + b"x: ")
        status, body = await connection.send_until_answered(b"y" * 8000)
        assert (status, error_of(body)) == (431, "headers_too_large")


async def test_an_endless_target_is_refused_with_431(server: Server) -> None:
    async with open_raw(server) as connection:
        await connection.send(b"GET /")
        assert (await connection.send_until_answered(b"y" * 8000))[0] == 431


async def test_a_target_of_16_kib_is_accepted_and_a_longer_one_refused(server: Server) -> None:
    for length, status in ((16 << 10, 404), ((16 << 10) + 1, 431)):
        async with open_raw(server) as connection:
            await connection.send(request_head(server, f"GET /{'x' * (length - 1)}") + b"\r\n")
            assert await connection.read_status() == status


async def test_headers_of_60_kib_are_accepted_and_of_65_kib_refused(server: Server) -> None:
    for kib, status in ((60, 200), (65, 431)):
        async with open_raw(server) as connection:
            field = f"x: {'y' * (kib << 10)}"
            await connection.send(request_head(server, "GET /api/health", field) + b"\r\n")
            assert await connection.read_status() == status


async def test_a_hundred_fields_are_accepted_and_more_are_refused(server: Server) -> None:
    for count, status in ((99, 200), (100, 431)):
        async with open_raw(server) as connection:
            fields = (f"x{number}: y" for number in range(count))
            await connection.send(request_head(server, "GET /api/health", *fields) + b"\r\n")
            assert await connection.read_status() == status


@pytest.mark.parametrize(
    "begin",
    [("GET /api/health",), (*CHUNKED_LOGIN, "", "1\r\n{\r\n0")],
    ids=["fields", "trailers"],
)
async def test_the_first_field_beyond_the_limit_is_refused_before_the_others_arrive(
    server: Server, begin: tuple[str, ...]
) -> None:
    async with open_raw(server) as connection:
        await connection.send(request_head(server, *begin) + b"x: y\r\n" * 101)
        status, body = await connection.read_response()
        assert (status, error_of(body)) == (431, "headers_too_large")


async def test_a_credential_in_a_trailer_is_ignored(server: Server) -> None:
    chunked = request_head(server, "GET /api/sessions", "Transfer-Encoding: chunked") + b"\r\n1\r\n{\r\n0\r\n"
    async with open_raw(server) as connection:
        await connection.send(chunked + f"{authorization_field(server)}\r\n\r\n".encode())
        assert await connection.read_status() == 401


@pytest.mark.parametrize(
    ("begin", "more"),
    [(b"1;x=", b"y" * 8000), (b"1\r\n{\r\n0\r\n", b"x: %s\r\n" % (b"y" * 8000))],
    ids=["chunk extension", "trailers"],
)
async def test_endless_framing_of_a_body_is_refused(server: Server, begin: bytes, more: bytes) -> None:
    async with open_raw(server) as connection:
        await connection.send(request_head(server, *CHUNKED_LOGIN) + b"\r\n" + begin)
        assert (await connection.send_until_answered(more))[0] == 431


@pytest.mark.parametrize(
    ("target", "field", "status"),
    [
        ("/ws/dashboard", f"Cookie: {'x' * 9000}", 431),
        ("/ws/\u00ff", "x: y", 400),
        ("/ws/dashboard", "x: \x01", 400),
        ("/ws/dashboard", "Sec-WebSocket-Key: BBBBBBBBBBBBBBBBBBBBBB==", 400),
    ],
)
async def test_an_invalid_upgrade_is_answered_with_an_error(
    server: Server, target: str, field: str, status: int
) -> None:
    before = len(server.audit_lines())
    async with open_raw(server) as connection:
        request = request_head(server, f"GET {target}", *UPGRADE, field).decode().encode("latin-1")
        await connection.send(request + b"\r\n")
        assert await connection.read_status() == status
    await server.call("GET", "/api/health")  # the audit line is written before this response
    assert "Traceback" not in server.output()
    (line,) = server.audit_lines()[before:]
    assert line["status"] == status


async def test_pipelined_requests_are_dropped_and_the_first_one_is_answered(server: Server) -> None:
    async with open_raw(server) as connection:
        await connection.send((request_head(server, "GET /api/health") + b"\r\n") * 5000)
        assert (await connection.read_until_closed()).count(b"HTTP/1.1 200 OK") == 1
    assert "Traceback" not in server.output()


# -- time -------------------------------------------------------------------------------------------


async def test_unfinished_headers_are_answered_with_408_and_closed(short_timeout_server: Server) -> None:
    async with open_raw(short_timeout_server) as connection:
        await connection.send(request_head(short_timeout_server, "GET /api/health"))
        status, body = await connection.read_response()
        assert (status, error_of(body)) == (408, "request_timeout")
        assert await connection.read_until_closed() == b""


async def test_an_unfinished_body_without_a_credential_is_answered_with_408(
    short_timeout_server: Server,
) -> None:
    async with open_raw(short_timeout_server) as connection:
        fields = ("Content-Type: application/json", "Content-Length: 100")
        await connection.send(request_head(short_timeout_server, "POST /api/login", *fields) + b"\r\n{")
        status, body = await connection.read_response()
        assert (status, error_of(body)) == (408, "request_timeout")
        assert await connection.read_until_closed() == b""
    await short_timeout_server.call("GET", "/api/health")  # the audit line is written before this response
    recorded = [(line["path"], line["status"]) for line in short_timeout_server.audit_lines()]
    assert recorded == [("/api/login", 408)]


async def test_a_connection_without_a_request_is_closed(short_timeout_server: Server) -> None:
    async with open_raw(short_timeout_server) as connection:
        assert await connection.read_until_closed() == b""


async def test_the_server_does_not_wait_for_the_body_of_a_refused_request(
    short_timeout_server: Server,
) -> None:
    async with open_raw(short_timeout_server) as connection:
        await connection.send(
            request_head(short_timeout_server, "POST /api/sessions", "Content-Length: 1000000") + b"\r\n{"
        )
        assert await connection.read_status() == 401
        await connection.read_until_closed()


async def wait_for_a_request_timeout(server: Server) -> None:
    """Wait until a new request has timed out; requests that began before it have timed out too."""
    async with open_raw(server) as connection:
        await connection.send(request_head(server, "GET /api/health"))
        assert await connection.read_status() == 408


async def test_a_body_with_a_credential_may_take_longer(short_timeout_server: Server) -> None:
    body = json.dumps({"locationPath": str(short_timeout_server.workspace)}).encode()
    fields = (
        authorization_field(short_timeout_server),
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
    )
    async with open_raw(short_timeout_server) as connection:
        await connection.send(
            request_head(short_timeout_server, "POST /api/sessions", *fields) + b"\r\n" + body[:5]
        )
        await wait_for_a_request_timeout(short_timeout_server)
        await connection.send(body[5:])
        assert await connection.read_status() == 201


async def test_headers_after_a_request_with_a_credential_have_the_same_deadline(
    short_timeout_server: Server,
) -> None:
    async with open_raw(short_timeout_server) as connection:
        await connection.send(
            request_head(short_timeout_server, "GET /api/health", authorization_field(short_timeout_server))
            + b"\r\n"
        )
        assert await connection.read_status() == 200
        await connection.send(
            request_head(short_timeout_server, "GET /api/health", authorization_field(short_timeout_server))
        )
        assert await connection.read_status() == 408


async def test_an_open_websocket_has_no_request_deadline(short_timeout_server: Server) -> None:
    async with short_timeout_server.socket("/ws/dashboard") as ws:
        await wait_for_a_request_timeout(short_timeout_server)
        await (await ws.ping())


async def test_an_unfinished_tls_handshake_is_closed(
    tmp_path: Path, workspace: Path, certificate: Certificate
) -> None:
    server = TlsServer(tmp_path / "home", workspace, certificate)
    server.set(BULLPEN_REQUEST_TIMEOUT="1")
    await server.start()
    try:
        async with open_raw(server) as connection:
            await connection.send(b"\x16\x03\x01\x02\x00\x01")  # the beginning of a ClientHello
            assert await connection.read_until_closed() == b""
        async with open_raw(server, server.context) as connection:
            await connection.send(request_head(server, "GET /api/health"))
            assert await connection.read_status() == 408
    finally:
        await server.close()


# -- connections ------------------------------------------------------------------------------------


async def open_connections(
    server: Server, stack: AsyncExitStack, data: bytes, count: int = MANY_CONNECTIONS
) -> list[RawConnection]:
    """Open connections without a credential and send an unfinished request over each."""
    connections = [await stack.enter_async_context(open_raw(server)) for _ in range(count)]
    for connection in connections:
        await connection.send(data)
    return connections


async def check_the_owner_is_served(server: Server) -> None:
    """Check that the owner's requests on new connections and a viewer of a new terminal are served."""
    for _ in range(3):
        async with open_raw(server) as connection:
            await connection.send(
                request_head(server, "GET /api/sessions", authorization_field(server)) + b"\r\n"
            )
            assert await connection.read_status() == 200
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
async def test_many_unauthenticated_connections_do_not_lock_the_owner_out(
    few_descriptors_server: Server, unfinished: bytes
) -> None:
    async with AsyncExitStack() as stack:
        await open_connections(few_descriptors_server, stack, unfinished)
        await check_the_owner_is_served(few_descriptors_server)
        assert open_descriptors(few_descriptors_server) <= DESCRIPTORS * 7 // 8
        assert await metric(few_descriptors_server, "bullpen_evicted_connections_total") > 0


async def test_unauthenticated_connections_leave_a_quarter_of_the_descriptors_free(
    few_descriptors_server: Server,
) -> None:
    async with AsyncExitStack() as stack:
        await open_connections(few_descriptors_server, stack, b"")
        await metric(few_descriptors_server, "bullpen_unauthenticated_connections")
        # The two more are the connection of the metrics request and the one after it.
        assert open_descriptors(few_descriptors_server) <= DESCRIPTORS * 3 // 4 + 2


async def test_authenticated_connections_stay_open_beside_many_unauthenticated_ones(
    few_descriptors_server: Server,
) -> None:
    async with (
        few_descriptors_server.socket("/ws/dashboard") as ws,
        open_raw(few_descriptors_server) as authenticated,
        AsyncExitStack() as stack,
    ):
        await ws.recv()
        await authenticated.send(
            request_head(
                few_descriptors_server,
                "POST /api/sessions",
                authorization_field(few_descriptors_server),
                "Content-Length: 2",
            )
            + b"\r\n"
        )
        await few_descriptors_server.call("GET", "/api/health")
        await open_connections(few_descriptors_server, stack, b"GET")
        await (await ws.ping())
        await authenticated.send(b"{}")
        assert await authenticated.read_status() in (201, 400)


async def test_a_socket_counts_as_unauthenticated_until_it_sends_its_second_secret(
    few_descriptors_server: Server,
) -> None:
    browser = await log_in(few_descriptors_server)
    headers = {**browser.cookie, "Origin": few_descriptors_server.url}
    url = f"ws://127.0.0.1:{few_descriptors_server.port}/ws/dashboard"
    async with connect(url, additional_headers=headers, proxy=None) as ws:
        assert await metric(few_descriptors_server, "bullpen_unauthenticated_connections") == 1
        await ws.send(json.dumps({"type": "auth", "secret": browser.secret}))
        assert json.loads(await ws.recv())["type"] == "sessions"
        assert await metric(few_descriptors_server, "bullpen_unauthenticated_connections") == 0


async def test_unfinished_tls_handshakes_do_not_lock_the_owner_out(
    tmp_path: Path, workspace: Path, certificate: Certificate
) -> None:
    server = TlsServer(tmp_path / "home", workspace, certificate)
    await server.start(descriptors=DESCRIPTORS)
    try:
        async with AsyncExitStack() as stack:
            opened = await open_connections(server, stack, b"\x16\x03\x01")
            async with open_raw(server, server.context) as connection:
                await connection.send(
                    request_head(server, "GET /api/sessions", authorization_field(server)) + b"\r\n"
                )
                assert await connection.read_status() == 200
            assert open_descriptors(server) <= DESCRIPTORS * 7 // 8
            assert await opened[0].read_until_closed() == b""
    finally:
        await server.close()


async def test_the_listener_accepts_one_connection_per_turn_of_the_event_loop() -> None:
    unauthenticated, transports = UnauthenticatedConnections(SECONDS, DESCRIPTORS), []

    class KeptConnection(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            transports.append(transport)

    with socket.create_server(("127.0.0.1", 0)) as listening, ExitStack() as clients:
        listening.setblocking(False)
        for _ in range(20):
            clients.enter_context(socket.create_connection(listening.getsockname()))
        listener = ConnectionListener(listening, unauthenticated, lambda _: KeptConnection(), None)
        listener.start()
        counts = [0]
        async with asyncio.timeout(SECONDS):
            while len(transports) < 20:
                await asyncio.sleep(0)  # one turn of the event loop
                counts.append(len(unauthenticated))
        listener.close()
        for transport in transports:
            transport.close()
    assert max(after - before for before, after in pairwise(counts)) == 1


async def test_closing_many_unauthenticated_connections_is_logged_once(
    few_descriptors_server: Server,
) -> None:
    async with AsyncExitStack() as stack:
        await open_connections(few_descriptors_server, stack, b"GET")
        await few_descriptors_server.call("GET", "/api/health")
        log, closed = few_descriptors_server.home / "logs" / "server.log", "closed the oldest connections"
        async with asyncio.timeout(SECONDS):
            while closed not in log.read_text():  # on a busy machine the server has not accepted all yet
                await asyncio.sleep(0.02)
    events = [json.loads(line)["event"] for line in log.read_text().splitlines()]
    assert events.count("closed the oldest connections without a credential") == 1
