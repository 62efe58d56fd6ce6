"""The audit log: who did what, who was refused, and nothing that was only read."""

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
from web.people import bearer, bearing, log_in, new_code, new_token, stranger

shared = pytest.mark.asyncio(loop_scope="session")


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def house(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Server]:
    """A server of this file's own: the log takes few refusals a minute, and other files cause many."""
    place = tmp_path_factory.mktemp("audited")
    (place / "workspace").mkdir()
    server = Server(place / "home", place / "workspace")
    await server.start()
    yield server
    await server.close()


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


class Since:
    """What the audit log has got since this was made; told in short."""

    def __init__(self, server: Server) -> None:
        self._path = server.home / "logs" / "audit.log"
        self._skip = len(lines(self._path)) if self._path.exists() else 0

    @property
    def lines(self) -> list[dict[str, Any]]:
        return lines(self._path)[self._skip :]

    @property
    def short(self) -> list[tuple[str | None, str, str, int]]:
        return [(line["name"], line["method"], line["path"], line["status"]) for line in self.lines]


@shared
async def test_what_was_done_is_told_with_who_when_and_from_where(house: Server) -> None:
    since = Since(house)
    token = await new_token(house, "operate")
    async with stranger(house, "127.0.5.1") as program:
        program.headers.update(bearing(token["token"]))
        made = (await program.post("/api/sessions", json={})).json()
        await program.get("/api/sessions")
        await program.delete(f"/api/sessions/{made['id']}")
    first, *rest = since.lines
    assert (first["principal"], first["name"], first["path"]) == ("owner", "owner", "/api/tokens")
    assert since.short[1:] == [
        ("operate token", "POST", "/api/sessions", 201),
        ("operate token", "DELETE", f"/api/sessions/{made['id']}", 200),
    ]
    for line in rest:
        assert (line["principal"], line["peer"]) == (token["id"], "127.0.5.1")
        assert line["time"] >= token["createdAt"]
        assert set(line) == {"time", "principal", "name", "method", "path", "status", "peer"}


@shared
async def test_a_login_is_told_under_the_name_of_the_device_and_a_wrong_code_under_none(
    house: Server,
) -> None:
    code = await new_code(house)
    since = Since(house)
    async with stranger(house, "127.0.5.2") as browser:
        await browser.post("/api/login", json={"code": "wrong"})
        await browser.post("/api/login", json={"code": code, "device": "Ada's phone"})
    assert since.short == [(None, "POST", "/api/login", 401), ("Ada's phone", "POST", "/api/login", 200)]


@shared
async def test_every_refusal_is_told_even_of_reading(house: Server) -> None:
    view = await bearer(house, "view")
    browser = await log_in(house)
    since = Since(house)
    async with stranger(house) as program:
        await program.get("/api/sessions")
        await program.get("/api/sessions", headers=bearing("wrong"))
        await program.get("/api/sessions", headers=browser.cookie)
        await program.get("/api/tokens", headers=view)
        await program.get("/api/health", headers={"Host": "evil.example"})
        await program.get("/api/sessions", headers=view | {"Origin": "http://evil.example"})
        await program.post("/api/sessions", headers=view, json={})
    assert since.short == [
        (None, "GET", "/api/sessions", 401),
        (None, "GET", "/api/sessions", 401),
        (None, "GET", "/api/sessions", 403),
        ("view token", "GET", "/api/tokens", 403),
        (None, "GET", "/api/health", 403),
        (None, "GET", "/api/sessions", 403),
        ("view token", "POST", "/api/sessions", 403),
    ]


@shared
async def test_sockets_are_told_when_they_open_and_when_we_close_them(house: Server) -> None:
    token = await new_token(house, "view")
    since = Since(house)
    async with house.socket("/ws/dashboard", headers=bearing(token["token"])) as ws:
        await ws.recv()
        await house.call("DELETE", f"/api/tokens/{token['id']}", 204)
        await ws.wait_closed()
    opened, *rest = since.short
    assert opened == ("view token", "WS", "/ws/dashboard", 101)
    assert ("view token", "WS", "/ws/dashboard", 4401) in rest


@shared
async def test_the_file_is_private(house: Server) -> None:
    await house.new_session()
    assert stat.S_IMODE((house.home / "logs" / "audit.log").stat().st_mode) == 0o600


ADA = Principal("t1", "Ada", Scope.OPERATE)


def test_the_log_rotates_and_keeps_old_files_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bullpen.logs.MAX_FILE_BYTES", 2000)
    log = AuditLog(tmp_path / "logs" / "audit.log")
    for n in range(200):
        log.write(ADA, "POST", f"/api/{n}", 201, "127.0.0.1")
    log.close()
    files = sorted((tmp_path / "logs").iterdir())
    assert len(files) == BACKUP_FILES + 1
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    assert lines(tmp_path / "logs" / "audit.log")[-1]["path"] == "/api/199"


def test_a_flood_of_strangers_does_not_push_out_what_matters(
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
    told = lines(tmp_path / "audit.log")
    assert len(told) == MAX_REFUSALS_PER_MINUTE + 3
    assert told[-3]["name"] == "Ada"
    assert told[-2]["left_out"] == 10_000 - MAX_REFUSALS_PER_MINUTE


def test_what_a_flood_left_out_is_counted_with_the_next_request_of_anybody(
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
    told = lines(tmp_path / "audit.log")
    assert len(told) == MAX_REFUSALS_PER_MINUTE + 1
    assert told[-1]["left_out"] == 7


def test_a_planted_link_is_not_written_through(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / "audit.log").symlink_to(victim)
    log = AuditLog(tmp_path / "audit.log")
    log.write(ADA, "POST", "/api/sessions", 201, "127.0.0.1")
    log.close()
    assert victim.read_text() == "precious"
