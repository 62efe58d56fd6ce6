"""Who comes to the doors: tokens of every scope, browsers that logged in, strangers from other addresses."""

import asyncio
from pathlib import Path
from typing import Any

import httpx

from support.server import Server

SCOPES = ("view", "operate", "admin")
Headers = dict[str, str]


def stranger(server: Server, address: str = "127.0.0.1") -> httpx.AsyncClient:
    """Somebody without a credential, at one of the many addresses of this machine."""
    transport = httpx.AsyncHTTPTransport(local_address=address)
    return httpx.AsyncClient(base_url=server.url, transport=transport, timeout=30, trust_env=False)


async def printed_url(server: Server) -> str:
    """The address in the line printed at start, without its code."""
    return (await printed_line(server)).partition("is at ")[2].partition("/#code=")[0]


async def printed_line(server: Server) -> str:
    """It comes a moment after the server is healthy."""
    async with asyncio.timeout(60):
        while True:
            for line in server.output().splitlines():
                if "/#code=" in line:
                    return line
            await asyncio.sleep(0.02)


async def new_token(server: Server, scope: str = "admin", **more: Any) -> dict[str, Any]:
    body = {"name": f"{scope} token", "scope": scope, **more}
    token: dict[str, Any] = await server.call("POST", "/api/tokens", 201, json=body)
    return token


async def bearer(server: Server, scope: str = "admin", **more: Any) -> Headers:
    return bearing((await new_token(server, scope, **more))["token"])


def bearing(token: str) -> Headers:
    return {"Authorization": f"Bearer {token}"}


def environment_of(pid: int) -> dict[str, str]:
    """The variables a process was given."""
    pairs = Path(f"/proc/{pid}/environ").read_bytes().decode().split("\0")
    return dict(pair.split("=", 1) for pair in pairs if "=" in pair)


class Browser:
    """A browser that logged in: the cookie it sends by itself, and the secret its own page knows."""

    def __init__(self, answer: httpx.Response) -> None:
        assert answer.status_code == 200, answer.text
        self.set_cookie = answer.headers["set-cookie"]
        self.cookie = {"Cookie": self.set_cookie.split(";")[0]}
        self.secret: str = answer.json()["secret"]

    @property
    def headers(self) -> Headers:
        return {**self.cookie, "X-Bullpen-Secret": self.secret}

    @property
    def secrets(self) -> list[str]:
        return [self.secret, self.cookie["Cookie"].split("=", 1)[1]]


async def new_code(server: Server, scope: str = "admin") -> str:
    code: str = (await server.call("POST", "/api/login-codes", 201, json={"scope": scope}))["code"]
    return code


async def log_in(server: Server, scope: str = "admin", device: str = "phone") -> Browser:
    code = await new_code(server, scope)
    async with stranger(server) as browser:
        return Browser(await browser.post("/api/login", json={"code": code, "device": device}))
