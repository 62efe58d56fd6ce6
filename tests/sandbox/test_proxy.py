"""The proxy of sealed runs: which hosts it reaches, and how it refuses and reports other hosts."""

import asyncio
import json
import shlex
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from bullpen.sandbox.proxy import (
    SOCKET_NAME,
    BadProxyRequest,
    ProxyRequest,
    SandboxProxy,
    allows,
    is_local,
    parse_request,
)
from support.server import Server
from support.session_client import SessionClient, define_scripted

PAGE = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello"


@pytest.mark.parametrize(
    ("allowed", "host", "port", "result"),
    [
        (["example.org"], "example.org", 443, True),
        (["example.org"], "EXAMPLE.org.", 80, True),
        (["example.org"], "example.org", 22, False),
        (["example.org:22"], "example.org", 22, True),
        (["example.org:22"], "example.org", 443, False),
        (["example.org"], "sub.example.org", 443, False),
        ([".example.org"], "sub.example.org", 443, True),
        ([".example.org"], "example.org", 443, True),
        ([".example.org"], "badexample.org", 443, False),
        (["example.org"], "example.org.evil.net", 443, False),
        ([], "example.org", 443, False),
    ],
)
def test_a_host_is_allowed_by_its_name_and_port(
    allowed: list[str], host: str, port: int, result: bool
) -> None:
    assert allows(allowed, host, port) is result


@pytest.mark.parametrize(
    "address", ["127.0.0.1", "::1", "169.254.169.254", "fe80::1%eth0", "0.0.0.0", "::ffff:127.0.0.1"]
)
def test_a_name_must_not_lead_to_this_machine(address: str) -> None:
    assert is_local(address)
    assert not is_local("192.0.2.1")


def test_every_address_of_an_interface_belongs_to_this_machine() -> None:
    families = (socket.AF_INET, socket.AF_INET6)
    found = [
        each.address for all in psutil.net_if_addrs().values() for each in all if each.family in families
    ]
    assert "127.0.0.1" in found
    assert [address for address in found if not is_local(address)] == []


def test_a_request_names_its_program_and_host() -> None:
    tunnel = parse_request(b"git\nCONNECT example.org:443 HTTP/1.1\r\nHost: x\r\n\r\n")
    assert (tunnel.program, tunnel.host, tunnel.port, tunnel.head) == ("git", "example.org", 443, b"")
    page = parse_request(
        b"curl\nGET http://example.org/a?b HTTP/1.1\r\nProxy-Authorization: x\r\nA: b\r\n\r\n"
    )
    assert page.head == b"GET /a?b HTTP/1.1\r\nConnection: close\r\nA: b\r\n\r\n"


@pytest.mark.parametrize(
    "line", [b"GET / HTTP/1.1", b"hello", b"CONNECT :443 HTTP/1.1", b"GET ftp://a/ HTTP/1.1"]
)
def test_what_is_no_request_to_a_proxy_is_refused(line: bytes) -> None:
    with pytest.raises(BadProxyRequest):
        parse_request(b"x\n" + line + b"\r\n\r\n")


async def fetch(client: SessionClient, url: str) -> dict[str, Any]:
    """Let the agent run curl in a terminal, always through the proxy; return its exit."""
    arguments = ["-sSf", "--noproxy", "", "--max-time", "20", url]
    params = f"params={json.dumps({'command': 'curl', 'args': arguments})}"
    after = (await client.events())[-1]["seq"]
    await client.run_turn(f"[[ask method=terminal/create {shlex.quote(params)}]]")
    exited: dict[str, Any] = (await client.wait_for_event("worker_exited", after=after))["data"]
    return exited


@asynccontextmanager
async def page_server() -> AsyncIterator[int]:
    """Serve a page on this machine; yield the port."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(PAGE)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as listening:
        yield listening.sockets[0].getsockname()[1]


async def test_a_sealed_agent_reaches_only_allowed_hosts_and_refusals_are_recorded(server: Server) -> None:
    async with page_server() as port:
        await define_scripted(server)
        client = await SessionClient.begin(server, sandbox="sealed")
        assert (await fetch(client, "http://elsewhere.invalid/"))["exitCode"] == 22
        refused = await client.wait_for_event("sandbox_refusal")
        assert refused["data"] == {
            "kind": "host",
            "target": "elsewhere.invalid",
            "program": "curl",
            "canBeAllowed": True,
        }
        assert refused["role"].startswith("curl")

        url, host = f"http://127.0.0.1:{port}/", f"127.0.0.1:{port}"
        assert (await fetch(client, url))["exitCode"] == 22
        grant = {"kind": "host", "target": host}
        added = await server.call("PUT", "/api/sandbox/grants", 200, json=grant)
        assert await server.call("PUT", "/api/sandbox/grants", 200, json=grant) == added
        assert (await fetch(client, url))["exitCode"] == 0
        await server.restart()  # its agent continues, with the proxy of the new server
        assert (await fetch(client, url))["exitCode"] == 0
        await server.call("DELETE", f"/api/sandbox/grants/{added['id']}", 204)
        assert (await fetch(client, url))["exitCode"] == 22
        assert (await server.call("GET", "/api/sandbox/grants", 200))["grants"] == []


async def test_a_name_that_leads_to_this_machine_is_refused(tmp_path: Path) -> None:
    refused: list[tuple[str, str, bool]] = []

    async def report(request: ProxyRequest, can_be_allowed: bool) -> None:
        refused.append((request.host, request.program, can_be_allowed))

    async with page_server() as port, SandboxProxy(lambda: [f"localhost:{port}"], report).listen(tmp_path):
        reader, writer = await asyncio.open_unix_connection(str(tmp_path / SOCKET_NAME))
        writer.write(f"x\nGET http://localhost:{port}/ HTTP/1.1\r\n\r\n".encode())
        assert (await reader.read()).startswith(b"HTTP/1.1 403")
        writer.close()
    assert refused == [("localhost", "x", False)]


async def test_a_path_can_be_allowed_and_bullpens_own_cannot(server: Server, tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    (shared / "file").write_text("hello")
    await define_scripted(server, state=[])
    refused = await server.call(
        "PUT", "/api/sandbox/grants", 403, json={"kind": "read", "target": str(server.home / "logs")}
    )
    assert "belongs to Bullpen" in refused["message"]

    async def exit_code() -> int:
        client = await SessionClient.begin(server)
        params = json.dumps({"command": "cat", "args": [str(shared / "file")]})
        await client.run_turn(f"[[ask method=terminal/create {shlex.quote(f'params={params}')}]]")
        code: int = (await client.wait_for_event("worker_exited"))["data"]["exitCode"]
        return code

    assert await exit_code() == 1
    granted = {"kind": "read", "target": str(shared)}
    await server.call("PUT", "/api/sandbox/grants", 200, json=granted)
    assert await exit_code() == 0
    around = {"kind": "write", "target": str(server.home.parent)}
    assert "contains files" in (await server.call("PUT", "/api/sandbox/grants", 403, json=around))["message"]

    # A run that may write around a granted path could lead it to another one, for the runs after it.
    shared.rename(tmp_path / "other")
    shared.symlink_to(tmp_path / "other")
    assert await exit_code() == 1
    added = await server.call("PUT", "/api/sandbox/grants", 200, json=granted)
    assert added["target"] == str(tmp_path / "other")
