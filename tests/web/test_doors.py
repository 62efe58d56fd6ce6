"""Who gets in: every route and socket against every wrong credential, Host and Origin (S-01 to S-05)."""

import itertools
import json
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from fastapi.routing import APIRoute, APIWebSocketRoute
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from bullpen.web.app import every_route
from support.server import Server

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
PUBLIC = {
    ("GET", "/api/health"),
    ("POST", "/api/login"),
    ("GET", "/"),
    ("GET", "/{path}"),
}
ID = "00000000-0000-4000-8000-000000000000"


def all_paths() -> list[str]:
    return sorted({route.path for route in every_route() if isinstance(route, APIRoute)})


def all_socket_paths() -> list[str]:
    return sorted({route.path for route in every_route() if isinstance(route, APIWebSocketRoute)})


def filled(path: str) -> str:
    for name in ("session_id", "worker_id", "repo_id", "token_id"):
        path = path.replace("{" + name + "}", ID)
    return path.replace("{path:path}", "nothing-here")


def wrong_headers() -> list[dict[str, str]]:
    return [
        {},
        {"Authorization": "Bearer wrong"},
        {"Authorization": "Bearer"},
        {"Authorization": "Basic dXNlcjp0b2tlbg=="},
        {"Cookie": "bullpen=wrong"},
        {"Cookie": "bullpen=wrong", "X-Bullpen-Secret": "wrong"},
    ]


async def test_no_route_answers_without_a_credential_but_the_literal_list(server: Server) -> None:
    public = {(method, path.replace("{path}", "{path:path}")) for method, path in PUBLIC}
    async with httpx.AsyncClient(base_url=server.url, trust_env=False) as nobody:
        for path, method, headers in itertools.product(all_paths(), METHODS, wrong_headers()):
            bearer = "Authorization" in headers
            is_public = (method, path) in public or (method == "HEAD" and ("GET", path) in public)
            answer = await nobody.request(method, filled(path), headers=headers)
            if is_public and not bearer:
                assert answer.status_code not in (401, 403) or path == "/api/login", (method, path)
            else:
                assert answer.status_code in (401, 403), (method, path, headers, answer.status_code)


async def test_no_socket_opens_without_a_credential(server: Server) -> None:
    for path, headers in itertools.product(all_socket_paths(), wrong_headers()):
        with pytest.raises(InvalidStatus) as refused:
            async with connect(
                f"ws://127.0.0.1:{server.port}{filled(path)}", additional_headers=headers, proxy=None
            ):
                pass
        assert refused.value.response.status_code in (401, 403)


async def login(server: Server) -> tuple[str, str]:
    code = (await server.call("POST", "/api/login-codes", 201))["code"]
    async with httpx.AsyncClient(base_url=server.url, trust_env=False) as browser:
        answer = await browser.post("/api/login", json={"code": code}, headers={"Origin": server.url})
        assert answer.status_code == 200
        cookie = answer.headers["set-cookie"]
        assert "HttpOnly" in cookie and "SameSite=strict" in cookie
        return cookie.split(";")[0], answer.json()["secret"]


async def test_a_code_logs_in_once_and_a_cookie_alone_is_never_enough(server: Server) -> None:
    code = (await server.call("POST", "/api/login-codes", 201))["code"]
    async with httpx.AsyncClient(base_url=server.url, trust_env=False) as browser:
        first = await browser.post("/api/login", json={"code": code})
        assert first.status_code == 200
        cookie, secret = first.headers["set-cookie"].split(";")[0], first.json()["secret"]
        assert (await browser.post("/api/login", json={"code": code})).status_code == 401
        browser.cookies.clear()
        only_cookie = await browser.get("/api/sessions", headers={"Cookie": cookie})
        assert only_cookie.status_code == 403
        both = await browser.get("/api/sessions", headers={"Cookie": cookie, "X-Bullpen-Secret": secret})
        assert both.status_code == 200


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


async def test_a_socket_with_a_login_opens_only_from_our_own_origin(server: Server) -> None:
    cookie, secret = await login(server)
    for origin in foreign_origins(server.port):
        headers = {"Cookie": cookie} | ({"Origin": origin} if origin else {})
        with pytest.raises(InvalidStatus) as refused:
            async with connect(
                f"ws://127.0.0.1:{server.port}/ws/dashboard", additional_headers=headers, proxy=None
            ):
                pass
        assert refused.value.response.status_code == 403, origin
    headers = {"Cookie": cookie, "Origin": server.url}
    async with connect(
        f"ws://127.0.0.1:{server.port}/ws/dashboard", additional_headers=headers, proxy=None
    ) as ws:
        await ws.send(json.dumps({"type": "auth", "secret": secret}))
        assert json.loads(await ws.recv())["type"] == "sessions"


async def test_a_socket_with_a_cookie_and_a_wrong_secret_is_closed(server: Server) -> None:
    cookie, _ = await login(server)
    headers = {"Cookie": cookie, "Origin": server.url}
    async with connect(
        f"ws://127.0.0.1:{server.port}/ws/dashboard", additional_headers=headers, proxy=None
    ) as ws:
        await ws.send(json.dumps({"type": "auth", "secret": "wrong"}))
        with pytest.raises(ConnectionClosed):
            await ws.recv()
        assert ws.close_code == 4401


async def test_a_foreign_origin_is_refused_whatever_the_credential(server: Server) -> None:
    for origin in filter(None, foreign_origins(server.port)):
        answer = await server.http.get("/api/sessions", headers={"Origin": origin})
        assert answer.status_code == 403, origin


def raw(server: Server, request: str) -> str:
    with socket.create_connection(("127.0.0.1", server.port), 5) as connection:
        connection.sendall(request.replace("\n", "\r\n").encode())
        answer = connection.makefile("rb").read().decode(errors="replace")
    return answer.split("\r\n", 1)[0]


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


async def test_a_foreign_or_doubled_host_is_refused_even_for_public_paths(server: Server) -> None:
    for head, path in itertools.product(FOREIGN, ("/api/health", "/", "/api/sessions")):
        request = head.format(path=path, port=server.port)
        request += f"Authorization: Bearer {server.token}\nConnection: close\n\n"
        assert raw(server, request).split()[1] in ("400", "403"), (path, head)
        login_request = head.replace("GET", "POST", 1).format(path="/api/login", port=server.port)
        login_request += (
            'Content-Type: application/json\nContent-Length: 12\nConnection: close\n\n{"code":"x"}'
        )
        assert raw(server, login_request).split()[1] in ("400", "403"), ("/api/login", head)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.test"])
def test_it_does_not_listen_beyond_loopback_without_tls_or_the_flag(tmp_path: Path, host: str) -> None:
    command = [sys.executable, "-m", "bullpen", "serve", "--no-open", "--port", "0", "--host", host]
    env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "BULLPEN_HOME": str(tmp_path / "home")}
    refused = subprocess.run(command, env=env, capture_output=True, text=True, timeout=30, check=False)
    assert refused.returncode != 0
    assert "--allow-plain-http-beyond-loopback" in refused.stderr
    assert "Traceback" not in refused.stderr
    assert not (tmp_path / "home" / "server.json").exists()
