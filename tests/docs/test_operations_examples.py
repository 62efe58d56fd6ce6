"""The settings, commands and log lines of docs/operations.md work with a real server."""

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

from bullpen.cli.systemd_unit import NAME
from bullpen.config import describe, find_definition, load
from docs.example_server import check_same_shape
from docs.page_examples import BIN, command_lines, run_line, uses_examples
from docs.test_operations import DATA, PAGE
from support.forks import start_bullpen
from support.server import Server
from support.tls import Certificate, TlsServer
from web.clients import LoggedInBrowser, new_token_headers, printed_url

NGINX_VARIABLES = {
    "$host": "bullpen.example",
    "$remote_addr": "203.0.113.9",
    "$scheme": "https",
    "$http_upgrade": "websocket",
}


def test_the_page_names_the_variable_and_the_default_of_each_setting() -> None:
    table = re.findall(r"^\| `(\w+)` \| `(\w+)` \| (?:`([^`]+)`)?[^|]*\|", PAGE, re.MULTILINE)
    defaults = describe(load(env={"HOME": "/root"}))
    assert [name for name, *_ in table] == list(defaults)
    for name, variable, shown in table:
        assert find_definition(name).env == variable
        if shown and name != "sandbox_caches":  # the page shows only some of these
            value = defaults[name]["value"]
            assert shown.replace("~", "/root") == (
                str(value).lower() if value in (True, False) else str(value)
            )


@uses_examples("docs/operations.md", "[[rules]]")
def test_the_rules_of_the_page_are_read_as_settings(shown_examples: list[str], tmp_path: Path) -> None:
    (tmp_path / "bullpen").mkdir()
    (tmp_path / "bullpen" / "config.toml").write_text(shown_examples[0])
    (rule,) = load(env={"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)}).rules
    (shown,) = tomllib.loads(shown_examples[0])["rules"]
    assert (rule.name, rule.agent_id, rule.command, rule.answer) == (
        shown["name"],
        shown["agentId"],
        shown["command"],
        shown["answer"],
    )
    as_json = {"HOME": str(tmp_path), "BULLPEN_RULES": json.dumps([shown])}
    assert load(env=as_json).rules == (rule,)


@uses_examples("docs/operations.md", '{"time"')
async def test_a_line_of_the_audit_log_looks_as_the_page_shows_it(
    shown_examples: list[str], server: Server
) -> None:
    headers = await new_token_headers(server, "operate", name="phone")
    await server.call(
        "POST", "/api/sessions", 201, json={"locationPath": str(server.workspace)}, headers=headers
    )
    shown = json.loads(shown_examples[0])
    real = json.loads((server.home / "logs" / "audit.log").read_text().splitlines()[-1])
    check_same_shape(shown, real)
    assert list(real) == list(shown)
    for name in ("name", "method", "path", "status", "peer"):
        assert real[name] == shown[name]


@pytest.mark.own_server
@uses_examples(
    "docs/operations.md",
    "bullpen token add ci --expires",
    "bullpen token ls",
    "bullpen token revoke ci",
    "bullpen token rotate",
)
async def test_tokens_are_added_listed_revoked_and_rotated(shown_examples: list[str], server: Server) -> None:
    env = server.environment()
    add, list_, revoke, rotate = shown_examples
    added, listed, revoked, rotated = [
        await asyncio.to_thread(run_line, line, server.workspace, env)
        for line in (add, list_, revoke, rotate)
    ]
    assert added.startswith("created ci (operate, expires in 30d)")
    assert re.search(r"\bci\b.*in 30d", listed)
    assert revoked == "revoked ci\n"
    assert rotated.splitlines()[1] == (server.home / "token").read_text().strip()


@uses_examples("docs/operations.md", "[Unit]")
def test_the_unit_is_the_one_that_is_printed(shown_examples: list[str], tmp_path: Path) -> None:
    (path,) = re.findall(r"^Environment=PATH=(.*)$", shown_examples[0], re.MULTILINE)
    printed = run_line(
        f"PATH={path} {BIN}/bullpen service install --print", tmp_path, {"HOME": str(tmp_path)}
    )
    assert printed == re.sub(
        r"^ExecStart=\S*/bin\b", f"ExecStart={BIN}", shown_examples[0], flags=re.MULTILINE
    )


@uses_examples(
    "docs/operations.md",
    "bullpen service install",
    "bullpen service start",
    "loginctl",
    "systemctl --user restart",
)
def test_the_commands_for_a_service_are_those_that_install_prints(
    shown_examples: list[str], tmp_path: Path
) -> None:
    """A fake systemctl that always succeeds is used, because a test machine need not run systemd."""
    install, *advice, restart = shown_examples
    systemctl = tmp_path / "systemctl"
    systemctl.write_text("#!/bin/sh\n")
    systemctl.chmod(0o755)
    output = run_line(install, tmp_path, {"HOME": str(tmp_path), "PATH": f"{tmp_path}:/usr/bin:/bin"})
    assert [line for line in advice if not re.search(rf"{re.escape(line)}(\.service)?(\s|$)", output)] == []
    assert f"{restart.split()[-1]}.service" == NAME
    assert (tmp_path / ".config" / "systemd" / "user" / NAME).exists()


async def serve(server: Server, options: str) -> None:
    """Start the server with these options on its own port, without a browser."""
    with open(server.home.with_suffix(".out"), "ab") as output, open(os.devnull, "rb") as nothing:
        arguments = ["serve", *shlex.split(options), "--no-open"]
        server.process = start_bullpen(arguments, server.environment(), (nothing, output, output))
    await server.ready()


@uses_examples("docs/operations.md", "bullpen serve --host", "--host 0.0.0.0")
async def test_the_server_starts_with_the_certificate_options_of_the_page(
    shown_examples: list[str],
    tmp_path: Path,
    workspace: Path,
    certificate: Certificate,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The certificate is for the loopback address, so localhost replaces the host name of the page."""
    monkeypatch.chdir(certificate.key.parent)
    local = shown_examples[0].removeprefix("bullpen serve ").replace("bullpen.example", "localhost")
    public = f"{local} {shown_examples[1]}"  # the last of two equal options counts
    for options, address in ((local, "https://localhost:{}"), (public, "https://bullpen.example:7420")):
        server = TlsServer(tmp_path / "home", workspace, certificate)
        server.set(BULLPEN_TLS_CERTIFICATE="", BULLPEN_TLS_KEY="")  # only the options name them
        server.home.with_suffix(".out").unlink(missing_ok=True)
        try:
            await serve(server, options)
            assert await printed_url(server) == address.format(server.port)
            await server.call("GET", "/api/sessions", headers={"Host": address[8:].format(server.port)})
        finally:
            await server.close()


@uses_examples("docs/operations.md", "bullpen serve --allowed-hosts", "server {")
async def test_the_server_works_behind_a_proxy_that_sets_the_headers_of_the_page(
    shown_examples: list[str], tmp_path: Path, workspace: Path
) -> None:
    """The test has no nginx. It sends the headers that nginx would send."""
    line, nginx = shown_examples
    assert f"proxy_pass http://127.0.0.1:{load(env={'HOME': str(tmp_path)}).port};" in nginx
    headers = {
        name: NGINX_VARIABLES.get(value, value.strip('"'))
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
        entries = map(json.loads, (server.home / "logs" / "audit.log").read_text().splitlines())
        assert {line["peer"] for line in entries} == {"203.0.113.9"}
    finally:
        await server.close()


@uses_examples("docs/operations.md", "du -s")
async def test_the_largest_directory_is_shown_last(
    shown_examples: list[str], tmp_path: Path, workspace: Path
) -> None:
    home = tmp_path / DATA
    home.parent.mkdir(parents=True)
    server = Server(home, workspace)
    try:
        await server.start()
        session = await server.new_session()
        worker = await server.new_terminal(session["id"])
        large = home / "spool" / worker["id"] / "large"
        large.write_bytes(b"x" * 1_000_000)
        shown = await asyncio.to_thread(run_line, shown_examples[0], tmp_path, {"HOME": str(tmp_path)})
        assert shown.splitlines()[-1].endswith(f"spool/{worker['id']}")
    finally:
        await server.close()


@uses_examples("docs/operations.md", "export BULLPEN_DATABASE_URL")
def test_the_database_url_of_the_page_is_accepted(shown_examples: list[str], tmp_path: Path) -> None:
    program = "from bullpen.config import load; print(load().database_url)"
    script = f'{shown_examples[0]}\n{sys.executable} -c "{program}"'
    address = run_line(script, tmp_path, {"HOME": str(tmp_path)})
    assert command_lines(shown_examples[0])[0].endswith(f"'{address.strip()}'")


@uses_examples("README.md", "ssh -L")
def test_the_tunnel_of_the_readme_ends_where_the_server_listens(
    shown_examples: list[str], tmp_path: Path
) -> None:
    assert ends_of_tunnel(shown_examples[0]) == listening_address(tmp_path)


@uses_examples("docs/operations.md", "ssh -L")
def test_the_tunnel_of_the_page_ends_where_the_server_listens(
    shown_examples: list[str], tmp_path: Path
) -> None:
    assert ends_of_tunnel(shown_examples[0]) == listening_address(tmp_path)


def ends_of_tunnel(line: str) -> list[str]:
    (ends,) = re.findall(r"^ssh -L (\d+:[\d.]+:\d+) \w+@\w+$", line)
    return str(ends).split(":")


def listening_address(home: Path) -> list[str]:
    """Return local port, host and remote port; both ports must be the one in the printed link."""
    settings = load(env={"HOME": str(home)})
    return [str(settings.port), settings.host, str(settings.port)]
