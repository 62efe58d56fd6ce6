"""Clients with every kind of credential: tokens of each scope, logged-in browsers, and no credential."""

import asyncio
from pathlib import Path
from typing import Any

import httpx

from support.server import Server

SCOPES = ("view", "operate", "admin")
Headers = dict[str, str]


def anonymous_client(server: Server, address: str = "127.0.0.1") -> httpx.AsyncClient:
    """Return a client without a credential that connects from a loopback address."""
    transport = httpx.AsyncHTTPTransport(local_address=address)
    return httpx.AsyncClient(base_url=server.url, transport=transport, timeout=30, trust_env=False)


async def printed_url(server: Server) -> str:
    """Return the address that the server printed at its start, without the login code."""
    return (await printed_login_line(server)).partition("is at ")[2].partition("/#code=")[0]


async def printed_login_line(server: Server) -> str:
    """Wait for the line with the login code. The server prints it shortly after it is healthy."""
    async with asyncio.timeout(60):
        while True:
            for line in server.output().splitlines():
                if "/#code=" in line:
                    return line
            await asyncio.sleep(0.02)


async def new_token(server: Server, scope: str = "admin", **more: Any) -> dict[str, Any]:
    """Create a token and return the response, which contains it."""
    body = {"name": f"{scope} token", "scope": scope, **more}
    token: dict[str, Any] = await server.call("POST", "/api/tokens", 201, json=body)
    return token


async def new_token_headers(server: Server, scope: str = "admin", **more: Any) -> Headers:
    """Create a token and return the headers that send it."""
    return bearer_headers((await new_token(server, scope, **more))["token"])


def bearer_headers(token: str) -> Headers:
    return {"Authorization": f"Bearer {token}"}


def environment_of(pid: int) -> dict[str, str]:
    """Return the environment variables with which a process was started."""
    pairs = Path(f"/proc/{pid}/environ").read_bytes().decode().split("\0")
    return dict(pair.split("=", 1) for pair in pairs if "=" in pair)


class LoggedInBrowser:
    """A logged-in browser: the cookie that it sends with each request, and the second secret of its page."""

    def __init__(self, answer: httpx.Response) -> None:
        assert answer.status_code == 200, answer.text
        self.set_cookie = answer.headers["set-cookie"]
        self.cookie = {"Cookie": self.set_cookie.split(";")[0]}
        self.secret: str = answer.json()["secret"]

    @property
    def headers(self) -> Headers:
        """Return the headers that the page itself sends: the cookie and the second secret."""
        return {**self.cookie, "X-Bullpen-Secret": self.secret}

    @property
    def secrets(self) -> list[str]:
        return [self.secret, self.cookie["Cookie"].split("=", 1)[1]]


async def new_login_code(server: Server, scope: str = "admin") -> str:
    code: str = (await server.call("POST", "/api/login-codes", 201, json={"scope": scope}))["code"]
    return code


async def log_in(server: Server, scope: str = "admin", device: str = "phone") -> LoggedInBrowser:
    code = await new_login_code(server, scope)
    async with anonymous_client(server) as browser:
        return LoggedInBrowser(await browser.post("/api/login", json={"code": code, "device": device}))
