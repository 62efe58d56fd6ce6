"""The server refuses every foreign Host and Origin, and listens only on loopback by default."""

import itertools
import json
import os
import socket
from pathlib import Path

import pytest
from fastapi.routing import APIWebSocketRoute
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from bullpen.web.app import every_route
from support.commands import Bullpen
from support.server import Server
from web.clients import log_in

session_loop = pytest.mark.asyncio(loop_scope="session")


def foreign_origins(port: int) -> list[str | None]:
    return [
        None,
        "null",
        "http://evil.example",
        f"http://127.0.0.1:{port + 1}",
        "http://127.0.0.1",
        f"https://127.0.0.1:{port}",
        f"http://127.0.0.1:{port}.evil.example",
        f"http://127.0.0.1:{port}@evil.example",
        f"http://evil.example#127.0.0.1:{port}",
        f"HTTP://127.0.0.1:{port}",
        f"http://LOCALHOST:{port}",
        f"http://localhost.:{port}",
        f"http://127.0.0.1:{port}/",
    ]


SOCKETS = [route.path for route in every_route() if isinstance(route, APIWebSocketRoute)]


@session_loop
async def test_a_socket_with_a_cookie_opens_only_from_the_servers_own_origin(shared_server: Server) -> None:
    browser = await log_in(shared_server)
    for path, origin in itertools.product(SOCKETS, foreign_origins(shared_server.port)):
        headers = browser.cookie | ({"Origin": origin} if origin else {})
        with pytest.raises(InvalidStatus) as refused:
            async with connect(
                f"ws://127.0.0.1:{shared_server.port}{path}", additional_headers=headers, proxy=None
            ):
                pass
        assert refused.value.response.status_code == 403, (path, origin)
    headers = {**browser.cookie, "Origin": shared_server.url}
    async with connect(
        f"ws://127.0.0.1:{shared_server.port}/ws/dashboard", additional_headers=headers, proxy=None
    ) as ws:
        await ws.send(json.dumps({"type": "auth", "secret": browser.secret}))
        assert json.loads(await ws.recv())["type"] == "sessions"


@session_loop
async def test_a_foreign_origin_is_refused_with_any_credential(shared_server: Server) -> None:
    for origin in filter(None, foreign_origins(shared_server.port)):
        answer = await shared_server.http.get("/api/sessions", headers={"Origin": origin})
        assert answer.status_code == 403, origin


def status_of(shared_server: Server, request: str) -> str:
    with socket.create_connection(("127.0.0.1", shared_server.port), 5) as connection:
        connection.sendall(request.replace("\n", "\r\n").encode())
        return connection.makefile("rb").readline().decode().split()[1]


FOREIGN_REQUESTS = [
    "GET {path} HTTP/1.1\nHost: evil.example\n",
    "GET {path} HTTP/1.1\nHost: evil.example:{port}\n",
    "GET {path} HTTP/1.1\nHost: 127.0.0.1\n",
    "GET {path} HTTP/1.1\nHost: 127.0.0.1.:{port}\n",
    "GET {path} HTTP/1.1\nHost: localhost.:{port}\n",
    "GET {path} HTTP/1.1\nHost: 127.0.0.1:{port}\nHost: evil.example\n",
    "GET {path} HTTP/1.1\nHost: 127.0.0.1:{port}\nHost: 127.0.0.1:{port}\n",
    "GET {path} HTTP/1.1\nHost: 127.0.0.1:{port}, evil.example\n",
    "GET {path} HTTP/1.1\nX-Nothing: 1\n",
    "GET {path} HTTP/1.0\nX-Forwarded-Host: 127.0.0.1:{port}\n",
    "GET {path} HTTP/1.1\nHost: evil.example\nX-Forwarded-Host: 127.0.0.1:{port}\n",
    "GET {path} HTTP/1.1\nHost: evil.example:{port}\nOrigin: http://evil.example:{port}\n",
    "GET http://evil.example{path} HTTP/1.1\nHost: 127.0.0.1:{port}\n",
    "GET http://evil.example{path} HTTP/1.1\nHost: evil.example\n",
]


@session_loop
async def test_a_foreign_or_repeated_host_is_refused_even_for_public_paths(shared_server: Server) -> None:
    for head, path in itertools.product(FOREIGN_REQUESTS, ("/api/health", "/", "/api/sessions")):
        request = head.format(path=path, port=shared_server.port)
        request += f"Authorization: Bearer {shared_server.token}\nConnection: close\n\n"
        assert status_of(shared_server, request) in ("400", "403"), (path, head)
        login_request = head.replace("GET", "POST", 1).format(path="/api/login", port=shared_server.port)
        login_request += (
            'Content-Type: application/json\nContent-Length: 12\nConnection: close\n\n{"code":"x"}'
        )
        assert status_of(shared_server, login_request) in ("400", "403"), ("/api/login", head)


UPGRADE = """Upgrade: websocket
Connection: Upgrade
Sec-WebSocket-Version: 13
Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==
Authorization: Bearer {token}

"""


@session_loop
async def test_no_socket_opens_under_a_foreign_or_repeated_host(shared_server: Server) -> None:
    upgrade = UPGRADE.format(token=shared_server.token)
    own_host = f"GET /ws/dashboard HTTP/1.1\nHost: 127.0.0.1:{shared_server.port}\n"
    assert status_of(shared_server, own_host + upgrade) == "101"
    for head, path in itertools.product(FOREIGN_REQUESTS, SOCKETS):
        request = head.format(path=path, port=shared_server.port) + upgrade
        assert status_of(shared_server, request) in ("400", "403"), (path, head)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.test"])
async def test_the_server_does_not_listen_beyond_loopback_without_tls_or_the_flag(
    tmp_path: Path, host: str
) -> None:
    bullpen = Bullpen(os.environ | {"HOME": str(tmp_path), "BULLPEN_HOME": str(tmp_path / "home")})
    refused = await bullpen("serve", "--no-open", "--port", "0", "--host", host)
    assert refused.code != 0
    assert "--allow-plain-http-beyond-loopback" in refused.err
    assert "Traceback" not in refused.err
    assert not (tmp_path / "home" / "server.json").exists()
