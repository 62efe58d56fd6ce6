"""The settings, commands and lines that docs/operations.md shows are what a real server takes and writes."""

import asyncio
import json
import os
import re
import shlex
import sys
import tomllib
from pathlib import Path

import httpx
import pytest
from websockets.asyncio.client import connect

from bullpen.cli.unit import NAME
from bullpen.config import load
from docs.fences import BIN, lines, tries, typed
from docs.stage import same_shape
from docs.test_operations import DATA
from support.forks import start_bullpen
from support.server import Server
from support.tls import Certificate, TlsServer
from web.clients import LoggedInBrowser, new_token_headers, printed_url

NAMES_IN_NGINX = {
    "$host": "bullpen.example",
    "$remote_addr": "203.0.113.9",
    "$scheme": "https",
    "$http_upgrade": "websocket",
}


@tries("docs/operations.md", "[[rules]]")
def test_the_rules_of_the_page_are_read_as_settings(written: list[str], tmp_path: Path) -> None:
    (tmp_path / "bullpen").mkdir()
    (tmp_path / "bullpen" / "config.toml").write_text(written[0])
    (rule,) = load(env={"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)}).rules
    (shown,) = tomllib.loads(written[0])["rules"]
    assert (rule.name, rule.agent_id, rule.command, rule.answer) == (
        shown["name"],
        shown["agentId"],
        shown["command"],
        shown["answer"],
    )
    as_json = {"HOME": str(tmp_path), "BULLPEN_RULES": json.dumps([shown])}
    assert load(env=as_json).rules == (rule,)


@tries("docs/operations.md", '{"time"')
async def test_a_line_of_the_audit_log_looks_as_the_page_shows_it(written: list[str], server: Server) -> None:
    headers = await new_token_headers(server, "operate", name="phone")
    await server.call(
        "POST", "/api/sessions", 201, json={"locationPath": str(server.workspace)}, headers=headers
    )
    shown = json.loads(written[0])
    real = json.loads((server.home / "logs" / "audit.log").read_text().splitlines()[-1])
    same_shape(shown, real)
    assert list(real) == list(shown)
    for name in ("name", "method", "path", "status", "peer"):
        assert real[name] == shown[name]


@tries(
    "docs/operations.md",
    "bullpen token add ci --expires",
    "bullpen token list",
    "bullpen token revoke ci",
    "bullpen token rotate",
)
async def test_tokens_are_made_listed_revoked_and_rotated(written: list[str], server: Server) -> None:
    env = server.environment()
    add, list_, revoke, rotate = written
    made, listed, revoked, rotated = [
        await asyncio.to_thread(typed, line, server.workspace, env) for line in (add, list_, revoke, rotate)
    ]
    assert made.startswith("created ci (operate, expires in 30d)")
    assert re.search(r"\bci\b.*in 30d", listed)
    assert revoked == "revoked ci\n"
    assert rotated.splitlines()[1] == (server.home / "token").read_text().strip()


@tries("docs/operations.md", "[Unit]")
def test_the_unit_is_the_one_that_is_printed(written: list[str], tmp_path: Path) -> None:
    (path,) = re.findall(r"^Environment=PATH=(.*)$", written[0], re.MULTILINE)
    printed = typed(f"PATH={path} {BIN}/bullpen service install --print", tmp_path, {"HOME": str(tmp_path)})
    assert printed == re.sub(r"^ExecStart=\S*/bin\b", f"ExecStart={BIN}", written[0], flags=re.MULTILINE)


@tries(
    "docs/operations.md",
    "bullpen service install",
    "bullpen service start",
    "loginctl",
    "systemctl --user restart",
)
def test_a_service_is_started_as_the_command_that_installs_it_says(
    written: list[str], tmp_path: Path
) -> None:
    """No test machine need run systemd: one that says yes stands in for it."""
    install, *advice, restart = written
    systemctl = tmp_path / "systemctl"
    systemctl.write_text("#!/bin/sh\n")
    systemctl.chmod(0o755)
    said = typed(install, tmp_path, {"HOME": str(tmp_path), "PATH": f"{tmp_path}:/usr/bin:/bin"})
    assert [line for line in advice if not re.search(rf"{re.escape(line)}(\.service)?(\s|$)", said)] == []
    assert f"{restart.split()[-1]}.service" == NAME
    assert (tmp_path / ".config" / "systemd" / "user" / NAME).exists()


async def serve(server: Server, flags: str) -> None:
    """With these flags and a port of its own; no browser is opened."""
    with open(server.home.with_suffix(".out"), "ab") as output, open(os.devnull, "rb") as nothing:
        arguments = ["serve", *shlex.split(flags), "--no-open"]
        server.process = start_bullpen(arguments, server.environment(), (nothing, output, output))
    await server.ready()


@tries("docs/operations.md", "bullpen serve --host", "--host 0.0.0.0")
async def test_it_serves_with_a_certificate_of_its_own(
    written: list[str],
    tmp_path: Path,
    workspace: Path,
    certificate: Certificate,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The certificate is for this machine's loopback, which so has the name of the page."""
    monkeypatch.chdir(certificate.key.parent)
    alone = written[0].removeprefix("bullpen serve ").replace("bullpen.example", "localhost")
    outside = f"{alone} {written[1]}"  # of a flag that is there twice the last one counts
    for flags, address in ((alone, "https://localhost:{}"), (outside, "https://bullpen.example:7420")):
        server = TlsServer(tmp_path / "home", workspace, certificate)
        server.set(BULLPEN_TLS_CERTIFICATE="", BULLPEN_TLS_KEY="")  # only the flags name them
        server.home.with_suffix(".out").unlink(missing_ok=True)
        try:
            await serve(server, flags)
            assert await printed_url(server) == address.format(server.port)
            await server.call("GET", "/api/sessions", headers={"Host": address[8:].format(server.port)})
        finally:
            await server.close()


@tries("docs/operations.md", "bullpen serve --allowed-hosts", "server {")
async def test_it_serves_behind_a_proxy_that_sets_the_headers_of_the_page(
    written: list[str], tmp_path: Path, workspace: Path
) -> None:
    """There is no nginx here; what it would send is."""
    line, nginx = written
    assert f"proxy_pass http://127.0.0.1:{load(env={'HOME': str(tmp_path)}).port};" in nginx
    headers = {
        name: NAMES_IN_NGINX.get(value, value.strip('"'))
        for name, value in re.findall(r"proxy_set_header (\S+) (\S+);", nginx)
    }
    assert (headers.pop("Upgrade"), headers["Connection"]) == ("websocket", "upgrade")
    server = Server(tmp_path / "home", workspace)
    try:
        await serve(server, line.removeprefix("bullpen serve "))
        assert await printed_url(server) == "https://bullpen.example"
        code = await server.call("POST", "/api/login-codes", 201, headers=headers)
        assert code["url"].startswith("https://bullpen.example/#code=")
        async with httpx.AsyncClient(base_url=server.url, trust_env=False) as client:
            origin = {"Origin": "https://bullpen.example"}
            login = await client.post("/api/login", json={"code": code["code"]}, headers=headers | origin)
        browser = LoggedInBrowser(login)
        assert "Secure" in browser.set_cookie
        forwarded = {name: value for name, value in headers.items() if name.startswith("X-")}
        async with connect(
            "ws://bullpen.example/ws/dashboard",
            host="127.0.0.1",
            port=server.port,
            additional_headers=browser.cookie | forwarded | origin,
            proxy=None,
        ) as ws:
            await ws.send(json.dumps({"type": "auth", "secret": browser.secret}))
            assert json.loads(await ws.recv())["type"] == "sessions"
        said = map(json.loads, (server.home / "logs" / "audit.log").read_text().splitlines())
        assert {line["peer"] for line in said} == {"203.0.113.9"}
    finally:
        await server.close()


@tries("docs/operations.md", "du -s")
async def test_what_takes_the_room_is_shown_last(written: list[str], tmp_path: Path, workspace: Path) -> None:
    home = tmp_path / DATA
    home.parent.mkdir(parents=True)
    server = Server(home, workspace)
    try:
        await server.start()
        session = await server.new_session()
        worker = await server.new_terminal(session["id"])
        large = home / "spool" / worker["id"] / "large"
        large.write_bytes(b"x" * 1_000_000)
        shown = await asyncio.to_thread(typed, written[0], tmp_path, {"HOME": str(tmp_path)})
        assert shown.splitlines()[-1].endswith(f"spool/{worker['id']}")
    finally:
        await server.close()


@tries("docs/operations.md", "export BULLPEN_DATABASE_URL")
def test_the_address_of_a_database_is_taken(written: list[str], tmp_path: Path) -> None:
    show = f'{written[0]}\n{sys.executable} -c "from bullpen.config import load; print(load().database_url)"'
    address = typed(show, tmp_path, {"HOME": str(tmp_path)})
    assert lines(written[0])[0].endswith(f"'{address.strip()}'")


@tries("README.md", "ssh -L")
def test_the_tunnel_of_the_readme_ends_where_the_server_listens(written: list[str], tmp_path: Path) -> None:
    assert ends_of_tunnel(written[0]) == where_it_listens(tmp_path)


@tries("docs/operations.md", "ssh -L")
def test_the_tunnel_of_the_page_ends_where_the_server_listens(written: list[str], tmp_path: Path) -> None:
    assert ends_of_tunnel(written[0]) == where_it_listens(tmp_path)


def ends_of_tunnel(line: str) -> list[str]:
    (ends,) = re.findall(r"^ssh -L (\d+:[\d.]+:\d+) \w+@\w+$", line)
    return str(ends).split(":")


def where_it_listens(home: Path) -> list[str]:
    """The same port here and there: the link that is printed leads to it."""
    settings = load(env={"HOME": str(home)})
    return [str(settings.port), settings.host, str(settings.port)]
