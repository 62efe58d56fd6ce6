"""Access from other machines: TLS of the server, and trusted and untrusted proxies."""

import json
import subprocess
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.asyncio.client import connect

from bullpen.config import load
from bullpen.domain.errors import Invalid
from bullpen.main import check_listening
from bullpen.web.proxies import TrustedProxies
from support.server import Server
from support.tls import Certificate, TlsServer
from web.clients import LoggedInBrowser, printed_url


async def test_with_a_certificate_everything_is_encrypted(tls_server: TlsServer) -> None:
    assert await printed_url(tls_server) == tls_server.url
    code = await tls_server.call("POST", "/api/login-codes", 201)
    assert code["url"].startswith(f"{tls_server.url}/#code=")
    async with httpx.AsyncClient(
        base_url=tls_server.url, verify=tls_server.context, trust_env=False
    ) as client:
        login = {"json": {"code": code["code"]}, "headers": {"Origin": tls_server.url}}
        browser = LoggedInBrowser(await client.post("/api/login", **login))  # type: ignore[arg-type]
    assert "Secure" in browser.set_cookie
    address = f"wss://127.0.0.1:{tls_server.port}/ws/dashboard"
    headers = {**browser.cookie, "Origin": tls_server.url}
    async with connect(address, additional_headers=headers, ssl=tls_server.context, proxy=None) as ws:
        await ws.send(json.dumps({"type": "auth", "secret": browser.secret}))
        assert json.loads(await ws.recv())["type"] == "sessions"
    plain = f"http://127.0.0.1:{tls_server.port}"
    assert (await tls_server.http.get("/api/sessions", headers={"Origin": plain})).status_code == 403
    async with httpx.AsyncClient(base_url=plain, trust_env=False) as unencrypted:
        with pytest.raises(httpx.TransportError):
            await unencrypted.get("/api/health")


@pytest.mark.parametrize("broken", ["missing", "no certificate", "another key", "locked"])
def test_a_certificate_that_cannot_be_used_is_refused_in_a_sentence(
    tmp_path: Path, certificate: Certificate, broken: str
) -> None:
    settings = certificate.settings
    match broken:
        case "missing":
            certificate.certificate.unlink()
        case "no certificate":
            certificate.certificate.write_text("hello")
        case "another key":
            (tmp_path / "other").mkdir()
            settings["BULLPEN_TLS_KEY"] = Certificate(tmp_path / "other").settings["BULLPEN_TLS_KEY"]
        case "locked":
            locking = f"openssl ec -aes256 -passout pass:x -in {certificate.key} -out {certificate.key}"
            subprocess.run(locking.split(), check=True, capture_output=True)
    with pytest.raises(Invalid, match=r"^the TLS certificate or its key cannot be used: .+$"):
        check_listening(load(env={"HOME": str(tmp_path), **settings}))


def test_a_valid_certificate_is_accepted(tmp_path: Path, certificate: Certificate) -> None:
    check_listening(load(env={"HOME": str(tmp_path), "BULLPEN_HOST": "0.0.0.0", **certificate.settings}))


PUBLIC_NAME = "bullpen.example"
FORWARDED = {"X-Forwarded-For": "203.0.113.9", "X-Forwarded-Proto": "https", "X-Forwarded-Host": PUBLIC_NAME}


def server_behind_proxy(tmp_path: Path, workspace: Path, trusted: str) -> Server:
    settings = {"BULLPEN_ALLOWED_HOSTS": PUBLIC_NAME, "BULLPEN_TRUSTED_PROXIES": trusted}
    return Server(tmp_path / "home", workspace, settings)


async def login_through(server: Server, headers: dict[str, str]) -> LoggedInBrowser:
    code = await server.call("POST", "/api/login-codes", 201, headers=headers)
    async with httpx.AsyncClient(base_url=server.url, trust_env=False) as client:
        return LoggedInBrowser(await client.post("/api/login", json={"code": code["code"]}, headers=headers))


def audited_peers(server: Server) -> list[str]:
    return [line["peer"] for line in server.audit_lines() if "peer" in line]


async def test_a_trusted_proxy_gives_the_client_the_scheme_and_the_host(
    tmp_path: Path, workspace: Path
) -> None:
    server = server_behind_proxy(tmp_path, workspace, "127.0.0.1")
    await server.start()
    try:
        assert await printed_url(server) == f"https://{PUBLIC_NAME}"
        code = await server.call("POST", "/api/login-codes", 201, headers=FORWARDED)
        assert code["url"].startswith(f"https://{PUBLIC_NAME}/#code=")
        browser = await login_through(server, FORWARDED | {"Origin": f"https://{PUBLIC_NAME}"})
        assert "Secure" in browser.set_cookie
        assert set(audited_peers(server)) == {"203.0.113.9"}
        foreign = FORWARDED | {"X-Forwarded-Host": "evil.example"}
        for host in ("evil.example", f"{PUBLIC_NAME}, evil.example"):
            refused = await server.http.get("/api/sessions", headers=foreign | {"X-Forwarded-Host": host})
            assert refused.status_code == 403
        address = f"ws://127.0.0.1:{server.port}/ws/dashboard"
        headers = {**browser.cookie, **FORWARDED, "Origin": f"https://{PUBLIC_NAME}"}
        async with connect(address, additional_headers=headers, proxy=None) as ws:
            await ws.send(json.dumps({"type": "auth", "secret": browser.secret}))
            assert json.loads(await ws.recv())["type"] == "sessions"
        # The command line on this machine still connects directly, without the proxy.
        assert json.loads((server.home / "server.json").read_text())["url"] == server.url
        assert "Secure" not in (await login_through(server, {})).set_cookie
    finally:
        await server.close()


@pytest.mark.asyncio(loop_scope="session")
async def test_headers_forwarded_by_an_untrusted_peer_are_ignored(shared_server: Server) -> None:
    browser = await login_through(shared_server, FORWARDED)
    assert "Secure" not in browser.set_cookie
    assert "203.0.113.9" not in audited_peers(shared_server)
    for name in ("Host", "X-Forwarded-Host"):
        answer = await shared_server.http.get("/api/sessions", headers={name: PUBLIC_NAME})
        assert answer.status_code == (403 if name == "Host" else 200)


async def scope_at_gate(trusted: list[str], peer: str, **headers: str) -> dict[str, Any]:
    """Return the ASGI scope of a request as the gate receives it."""
    received: dict[str, Any] = {}

    async def gate(scope: Any, _receive: Any, _send: Any) -> None:
        received.update(scope)

    async def nothing(*_: Any) -> Any:
        raise AssertionError

    raw = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": "http", "scheme": "http", "client": (peer, 5), "headers": [(b"host", b"inner"), *raw]}
    await TrustedProxies(gate, trusted)(scope, nothing, nothing)
    return received


TRUSTED = ["10.0.0.0/8", "::1"]


@pytest.mark.parametrize(
    ("peer", "forwarded", "client"),
    [
        ("10.1.2.3", "203.0.113.9", "203.0.113.9"),
        ("::1", "203.0.113.9", "203.0.113.9"),
        ("10.1.2.3", "made-up, 203.0.113.9, 10.9.9.9", "203.0.113.9"),
        ("10.1.2.3", "10.0.0.1, 10.0.0.2", "10.0.0.1"),
        ("10.1.2.3", " , ", "10.1.2.3"),
        ("11.1.2.3", "203.0.113.9", "11.1.2.3"),
        ("127.0.0.1", "203.0.113.9", "127.0.0.1"),
    ],
)
async def test_the_client_is_the_last_address_that_is_not_a_trusted_proxy(
    peer: str, forwarded: str, client: str
) -> None:
    assert (await scope_at_gate(TRUSTED, peer, x_forwarded_for=forwarded))["client"][0] == client


@pytest.mark.parametrize("scheme", ["ftp", "javascript", "https, http", ""])
async def test_an_invalid_forwarded_scheme_is_ignored(scheme: str) -> None:
    assert (await scope_at_gate(TRUSTED, "10.0.0.1", x_forwarded_proto=scheme))["scheme"] == "http"
    assert (await scope_at_gate(TRUSTED, "10.0.0.1", x_forwarded_proto="https"))["scheme"] == "https"


@pytest.mark.parametrize("value", ["*", "proxy.example", "10.0.0.1/33", "10.0.0.1/8"])
def test_a_trusted_proxy_that_is_not_an_address_is_refused(value: str) -> None:
    with pytest.raises(Invalid, match="trusted_proxies has"):
        TrustedProxies(None, [value])  # type: ignore[arg-type]
