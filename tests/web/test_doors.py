"""Which names we answer to: every wrong Host and Origin, and where we listen (S-02 to S-04)."""

import itertools
import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from fastapi.routing import APIWebSocketRoute
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from bullpen.web.app import every_route
from support.server import Server
from web.people import log_in

shared = pytest.mark.asyncio(loop_scope="session")


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


@shared
async def test_a_socket_with_a_login_opens_only_from_our_own_origin(house: Server) -> None:
    browser = await log_in(house)
    for path, origin in itertools.product(SOCKETS, foreign_origins(house.port)):
        headers = browser.cookie | ({"Origin": origin} if origin else {})
        with pytest.raises(InvalidStatus) as refused:
            async with connect(f"ws://127.0.0.1:{house.port}{path}", additional_headers=headers, proxy=None):
                pass
        assert refused.value.response.status_code == 403, (path, origin)
    headers = {**browser.cookie, "Origin": house.url}
    async with connect(
        f"ws://127.0.0.1:{house.port}/ws/dashboard", additional_headers=headers, proxy=None
    ) as ws:
        await ws.send(json.dumps({"type": "auth", "secret": browser.secret}))
        assert json.loads(await ws.recv())["type"] == "sessions"


@shared
async def test_a_socket_with_a_cookie_and_a_wrong_secret_is_closed(house: Server) -> None:
    browser = await log_in(house)
    headers = {**browser.cookie, "Origin": house.url}
    async with connect(
        f"ws://127.0.0.1:{house.port}/ws/dashboard", additional_headers=headers, proxy=None
    ) as ws:
        await ws.send(json.dumps({"type": "auth", "secret": "wrong"}))
        with pytest.raises(ConnectionClosed):
            await ws.recv()
        assert ws.close_code == 4401


@shared
async def test_b8_a_foreign_origin_is_refused_whatever_the_credential(house: Server) -> None:
    for origin in filter(None, foreign_origins(house.port)):
        answer = await house.http.get("/api/sessions", headers={"Origin": origin})
        assert answer.status_code == 403, origin


def status_of(house: Server, request: str) -> str:
    with socket.create_connection(("127.0.0.1", house.port), 5) as connection:
        connection.sendall(request.replace("\n", "\r\n").encode())
        return connection.makefile("rb").readline().decode().split()[1]


FOREIGN = [
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


@shared
async def test_b8_a_foreign_or_doubled_host_is_refused_even_for_public_paths(house: Server) -> None:
    for head, path in itertools.product(FOREIGN, ("/api/health", "/", "/api/sessions")):
        request = head.format(path=path, port=house.port)
        request += f"Authorization: Bearer {house.token}\nConnection: close\n\n"
        assert status_of(house, request) in ("400", "403"), (path, head)
        login_request = head.replace("GET", "POST", 1).format(path="/api/login", port=house.port)
        login_request += (
            'Content-Type: application/json\nContent-Length: 12\nConnection: close\n\n{"code":"x"}'
        )
        assert status_of(house, login_request) in ("400", "403"), ("/api/login", head)


UPGRADE = """Upgrade: websocket
Connection: Upgrade
Sec-WebSocket-Version: 13
Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==
Authorization: Bearer {token}

"""


@shared
async def test_b8_no_socket_opens_under_a_foreign_or_doubled_host(house: Server) -> None:
    upgrade = UPGRADE.format(token=house.token)
    ours = f"GET /ws/dashboard HTTP/1.1\nHost: 127.0.0.1:{house.port}\n"
    assert status_of(house, ours + upgrade) == "101"
    for head, path in itertools.product(FOREIGN, SOCKETS):
        request = head.format(path=path, port=house.port) + upgrade
        assert status_of(house, request) in ("400", "403"), (path, head)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.test"])
def test_b8_it_does_not_listen_beyond_loopback_without_tls_or_the_flag(tmp_path: Path, host: str) -> None:
    command = [sys.executable, "-m", "bullpen", "serve", "--no-open", "--port", "0", "--host", host]
    env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "BULLPEN_HOME": str(tmp_path / "home")}
    refused = subprocess.run(command, env=env, capture_output=True, text=True, timeout=30, check=False)
    assert refused.returncode != 0
    assert "--allow-plain-http-beyond-loopback" in refused.stderr
    assert "Traceback" not in refused.stderr
    assert not (tmp_path / "home" / "server.json").exists()
