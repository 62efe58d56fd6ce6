"""The audit log: each change and each refusal with its credential, and no successful read request."""

import json
import stat
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from bullpen import clock
from bullpen.logs import BACKUP_FILES
from bullpen.web.audit import MAX_REFUSALS_PER_MINUTE, AuditLog
from bullpen.web.scopes import Principal, Scope
from support.server import Server
from web.clients import anonymous_client, bearer_headers, log_in, new_login_code, new_token, new_token_headers

session_loop = pytest.mark.asyncio(loop_scope="session")


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def audited_server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Server]:
    """A server for this module only: the log takes few refusals a minute, and other tests cause many."""
    directory = tmp_path_factory.mktemp("audited")
    (directory / "workspace").mkdir()
    server = Server(directory / "home", directory / "workspace")
    await server.start()
    yield server
    await server.close()


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


class NewAuditLines:
    """The lines that were added to the audit log after this object was created."""

    def __init__(self, server: Server) -> None:
        self._path = server.home / "logs" / "audit.log"
        self._skip = len(lines(self._path)) if self._path.exists() else 0

    @property
    def lines(self) -> list[dict[str, Any]]:
        return lines(self._path)[self._skip :]

    @property
    def summaries(self) -> list[tuple[str | None, str, str, int]]:
        return [(line["name"], line["method"], line["path"], line["status"]) for line in self.lines]


@session_loop
async def test_a_change_is_recorded_with_its_credential_time_and_address(audited_server: Server) -> None:
    added = NewAuditLines(audited_server)
    token = await new_token(audited_server, "operate")
    async with anonymous_client(audited_server, "127.0.5.1") as program:
        program.headers.update(bearer_headers(token["token"]))
        session = (await program.post("/api/sessions", json={})).json()
        await program.get("/api/sessions")
        await program.delete(f"/api/sessions/{session['id']}")
    first, *rest = added.lines
    assert (first["principal"], first["name"], first["path"]) == ("owner", "owner", "/api/tokens")
    assert added.summaries[1:] == [
        ("operate token", "POST", "/api/sessions", 201),
        ("operate token", "DELETE", f"/api/sessions/{session['id']}", 200),
    ]
    for line in rest:
        assert (line["principal"], line["peer"]) == (token["id"], "127.0.5.1")
        assert line["time"] >= token["createdAt"]
        assert set(line) == {"time", "principal", "name", "method", "path", "status", "peer"}


@session_loop
async def test_a_login_is_recorded_with_its_device_name_and_a_wrong_code_without_a_name(
    audited_server: Server,
) -> None:
    code = await new_login_code(audited_server)
    added = NewAuditLines(audited_server)
    async with anonymous_client(audited_server, "127.0.5.2") as browser:
        await browser.post("/api/login", json={"code": "wrong"})
        await browser.post("/api/login", json={"code": code, "device": "Ada's phone"})
    assert added.summaries == [(None, "POST", "/api/login", 401), ("Ada's phone", "POST", "/api/login", 200)]


@session_loop
async def test_every_refusal_is_recorded_even_of_a_read_request(audited_server: Server) -> None:
    view = await new_token_headers(audited_server, "view")
    browser = await log_in(audited_server)
    added = NewAuditLines(audited_server)
    async with anonymous_client(audited_server) as program:
        await program.get("/api/sessions")
        await program.get("/api/sessions", headers=bearer_headers("wrong"))
        await program.get("/api/sessions", headers=browser.cookie)
        await program.get("/api/tokens", headers=view)
        await program.get("/api/health", headers={"Host": "evil.example"})
        await program.get("/api/sessions", headers=view | {"Origin": "http://evil.example"})
        await program.post("/api/sessions", headers=view, json={})
    assert added.summaries == [
        (None, "GET", "/api/sessions", 401),
        (None, "GET", "/api/sessions", 401),
        (None, "GET", "/api/sessions", 403),
        ("view token", "GET", "/api/tokens", 403),
        (None, "GET", "/api/health", 403),
        (None, "GET", "/api/sessions", 403),
        ("view token", "POST", "/api/sessions", 403),
    ]


@session_loop
async def test_a_socket_is_recorded_when_it_opens_and_when_the_server_closes_it(
    audited_server: Server,
) -> None:
    token = await new_token(audited_server, "view")
    added = NewAuditLines(audited_server)
    async with audited_server.socket("/ws/dashboard", headers=bearer_headers(token["token"])) as ws:
        await ws.recv()
        await audited_server.call("DELETE", f"/api/tokens/{token['id']}", 204)
        await ws.wait_closed()
    opened, *rest = added.summaries
    assert opened == ("view token", "WS", "/ws/dashboard", 101)
    assert ("view token", "WS", "/ws/dashboard", 4401) in rest


@session_loop
async def test_the_audit_log_is_a_private_file(audited_server: Server) -> None:
    await audited_server.new_session()
    assert stat.S_IMODE((audited_server.home / "logs" / "audit.log").stat().st_mode) == 0o600


ADA = Principal("t1", "Ada", Scope.OPERATE)


def test_the_audit_log_rotates_and_keeps_old_files_private(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bullpen.logs.MAX_FILE_BYTES", 2000)
    log = AuditLog(tmp_path / "logs" / "audit.log")
    for n in range(200):
        log.write(ADA, "POST", f"/api/{n}", 201, "127.0.0.1")
    log.close()
    files = sorted((tmp_path / "logs").iterdir())
    assert len(files) == BACKUP_FILES + 1
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    assert lines(tmp_path / "logs" / "audit.log")[-1]["path"] == "/api/199"


def test_a_flood_of_refusals_does_not_push_out_other_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 1000.0
    monkeypatch.setattr(clock, "monotonic", lambda: now)
    log = AuditLog(tmp_path / "audit.log")
    for _ in range(10_000):
        log.write(None, "GET", "/api/sessions", 401, "127.0.0.1")
    log.write(ADA, "POST", "/api/sessions", 201, "127.0.0.1")
    now += 60
    log.write(None, "GET", "/api/sessions", 401, "127.0.0.1")
    log.close()
    written = lines(tmp_path / "audit.log")
    assert len(written) == MAX_REFUSALS_PER_MINUTE + 3
    assert written[-3]["name"] == "Ada"
    assert written[-2]["left_out"] == 10_000 - MAX_REFUSALS_PER_MINUTE


def test_refusals_left_out_during_a_flood_are_counted_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 1000.0
    monkeypatch.setattr(clock, "monotonic", lambda: now)
    log = AuditLog(tmp_path / "audit.log")
    for _ in range(MAX_REFUSALS_PER_MINUTE + 7):
        log.write(None, "GET", "/%00", 404, "127.0.0.1")
    log.write_summary()
    now += 60
    log.write_summary()
    log.write_summary()
    log.close()
    written = lines(tmp_path / "audit.log")
    assert len(written) == MAX_REFUSALS_PER_MINUTE + 1
    assert written[-1]["left_out"] == 7


def test_the_audit_log_is_not_written_through_a_planted_link(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / "audit.log").symlink_to(victim)
    log = AuditLog(tmp_path / "audit.log")
    log.write(ADA, "POST", "/api/sessions", 201, "127.0.0.1")
    log.close()
    assert victim.read_text() == "precious"
