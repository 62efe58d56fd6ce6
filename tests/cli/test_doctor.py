"""`bullpen doctor` finds what is wrong and says what to do about it."""

import asyncio
import json
import os
import socket
import sqlite3
import sys
from pathlib import Path
from typing import NamedTuple

import psutil
import pytest

from bullpen.keeper.frames import VERSION
from keeper.harness import run_keeper
from support.commands import Bullpen
from support.ports import free_port
from support.server import Server, end_processes_of


class Checkup(NamedTuple):
    code: int
    checks: dict[str, dict[str, str]]

    def verdicts(self, verdict: str) -> list[str]:
        return [name for name, check in self.checks.items() if check["verdict"] == verdict]


async def examine(bullpen: Bullpen) -> Checkup:
    done = await bullpen("doctor", "--json")
    report = json.loads(done.out)
    assert done.err == ""
    assert report["ok"] == (done.code == 0)
    return Checkup(done.code, {check["name"]: check for check in report["checks"]})


@pytest.fixture
def house(lonely_bullpen: Bullpen) -> Path:
    """A private data directory that no server runs on, at a port nobody has."""
    home = Path(lonely_bullpen.env["BULLPEN_HOME"])
    home.mkdir(mode=0o700)
    lonely_bullpen.env["BULLPEN_PORT"] = str(free_port())
    return home


async def test_a_running_house_is_well(bullpen: Bullpen, server: Server) -> None:
    found = await examine(bullpen)
    assert (found.code, found.verdicts("fail")) == (0, [])
    assert {"python", "git", "data", "disk", "database", "token", "server", "keeper"} <= set(
        found.verdicts("ok")
    )
    assert "port" not in found.checks
    shown = (await bullpen("doctor")).out
    assert "ok    server    " in shown
    del bullpen.env["BULLPEN_TOKEN"]
    assert (await examine(bullpen)).checks["token"]["found"].endswith("mode 600")


async def test_before_the_first_start_nothing_is_wrong_and_nothing_is_made(lonely_bullpen: Bullpen) -> None:
    lonely_bullpen.env["BULLPEN_PORT"] = "0"
    found = await examine(lonely_bullpen)
    assert (found.code, found.verdicts("fail")) == (0, [])
    assert found.checks["server"]["verdict"] == "warn"
    assert found.checks["server"]["advice"] == "start it with: bullpen serve"
    assert not Path(lonely_bullpen.env["BULLPEN_HOME"]).exists()


async def test_what_others_may_read_is_named(lonely_bullpen: Bullpen, house: Path) -> None:
    (house / "token").touch(mode=0o644)
    found = await examine(lonely_bullpen)
    assert (found.code, found.verdicts("fail")) == (1, ["data", "token"])
    assert "mode 644" in found.checks["token"]["found"]
    assert "bullpen token rotate" in found.checks["token"]["advice"]
    shown = await lonely_bullpen("doctor")
    assert shown.code == 1
    assert "fail  token     others may read ~/nobody/token (mode 644)" in shown.out
    assert "→ close it: chmod -R go= ~/nobody" in shown.out


async def test_a_damaged_database_is_found(lonely_bullpen: Bullpen, house: Path) -> None:
    assert (await lonely_bullpen("db", "upgrade")).code == 0
    database = house / "bullpen.db"
    with sqlite3.connect(database) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        root, size = (
            connection.execute(question).fetchone()[0]
            for question in (
                "SELECT rootpage FROM sqlite_master WHERE name = 'events' AND type = 'table'",
                "PRAGMA page_size",
            )
        )
    connection.close()
    assert (await examine(lonely_bullpen)).checks["database"]["verdict"] == "ok"
    with database.open("r+b") as file:
        file.seek((root - 1) * size)
        file.write(b"\xff" * size)
    damaged = await examine(lonely_bullpen)
    assert (damaged.code, damaged.verdicts("fail")) == (1, ["database"])
    assert "backup" in damaged.checks["database"]["advice"]


async def test_a_file_that_is_no_database_is_found(lonely_bullpen: Bullpen, house: Path) -> None:
    database = house / "bullpen.db"
    database.touch(mode=0o600)
    database.write_bytes(b"nonsense" * 1000)
    assert (await examine(lonely_bullpen)).verdicts("fail") == ["database"]


async def test_a_newer_database_is_told(lonely_bullpen: Bullpen, house: Path) -> None:
    assert (await lonely_bullpen("db", "upgrade")).code == 0
    with sqlite3.connect(house / "bullpen.db") as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    connection.close()
    found = await examine(lonely_bullpen)
    assert found.verdicts("fail") == ["database"]
    assert found.checks["database"]["advice"] == "upgrade Bullpen"


async def test_a_port_somebody_else_has_is_told(lonely_bullpen: Bullpen, house: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        lonely_bullpen.env["BULLPEN_PORT"] = str(other.getsockname()[1])
        found = await examine(lonely_bullpen)
    assert found.verdicts("fail") == ["port"]
    assert "BULLPEN_PORT" in found.checks["port"]["advice"]
    assert (await examine(lonely_bullpen)).checks["port"]["verdict"] == "ok"


async def test_a_bad_setting_is_told(lonely_bullpen: Bullpen) -> None:
    lonely_bullpen.env["BULLPEN_PORT"] = "many"
    found = await examine(lonely_bullpen)
    assert (found.code, found.verdicts("fail")) == (1, ["settings"])
    assert found.checks["settings"]["found"].startswith("BULLPEN_PORT must be a whole number")


async def test_without_git_it_says_so(lonely_bullpen: Bullpen, house: Path, tmp_path: Path) -> None:
    lonely_bullpen.env["PATH"] = str(tmp_path)
    found = await examine(lonely_bullpen)
    assert found.verdicts("fail") == ["git"]


@pytest.mark.parametrize(
    ("said", "verdict"),
    [
        ("2.37.7", "fail"),
        ("1.99.0", "fail"),
        ("2.38.0.windows.1", "ok"),
        ("2.39.5 (Apple Git-154)", "ok"),
        ("3.0", "ok"),
    ],
)
async def test_a_git_that_is_too_old_is_told(
    lonely_bullpen: Bullpen, house: Path, tmp_path: Path, said: str, verdict: str
) -> None:
    git = tmp_path / "git"
    git.write_text(f"#!/bin/sh\necho 'git version {said}'\n")
    git.chmod(0o755)
    lonely_bullpen.env["PATH"] = str(tmp_path)
    check = (await examine(lonely_bullpen)).checks["git"]
    advice = "install git 2.38 or newer" if verdict == "fail" else ""
    assert (check["verdict"], check["found"], check["advice"]) == (verdict, said, advice)


async def test_a_token_the_server_does_not_know_is_told(bullpen: Bullpen) -> None:
    bullpen.env["BULLPEN_TOKEN"] = "wrong"
    found = await examine(bullpen)
    assert found.verdicts("fail") == ["server"]
    assert "BULLPEN_TOKEN" in found.checks["server"]["advice"]


async def test_a_server_without_a_keeper_is_told(bullpen: Bullpen, server: Server) -> None:
    found = await examine(bullpen)
    assert found.checks["keeper"]["verdict"] == "ok"
    async with asyncio.timeout(60):
        # A server that is still warming up starts another keeper.
        while found.checks["keeper"]["verdict"] == "ok":
            for keeper in _processes_of(server.home):
                keeper.kill()
                psutil.wait_procs([keeper], timeout=60)
            found = await examine(bullpen)
    assert found.verdicts("fail") == ["keeper"]
    assert "restart the server" in found.checks["keeper"]["advice"]


async def test_a_keeper_of_another_version_is_told(lonely_bullpen: Bullpen, house: Path) -> None:
    try:
        assert run_keeper(house, "older", VERSION + 1).returncode == 0
        found = await examine(lonely_bullpen)
        assert (found.code, found.checks["keeper"]["verdict"]) == (0, "warn")
        assert f"older of version {VERSION + 1}, ours is {VERSION}" in found.checks["keeper"]["found"]
        assert "keeps its processes" in found.checks["keeper"]["advice"]
        (keeper,) = _processes_of(house)
        keeper.suspend()
        assert (await examine(lonely_bullpen)).verdicts("fail") == ["keeper"]
    finally:
        end_processes_of(house)


async def test_a_keeper_that_waits_for_a_server_is_well(lonely_bullpen: Bullpen, house: Path) -> None:
    try:
        assert run_keeper(house, "one").returncode == 0
        for _ in range(2):  # looking at it changes nothing
            found = await examine(lonely_bullpen)
            assert found.checks["keeper"]["verdict"] == "ok"
            assert f"version {VERSION}" in found.checks["keeper"]["found"]
    finally:
        end_processes_of(house)


async def test_a_data_directory_that_cannot_be_made_is_told(lonely_bullpen: Bullpen, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    lonely_bullpen.env |= {"BULLPEN_HOME": str(tmp_path / "file" / "home"), "BULLPEN_PORT": "0"}
    found = await examine(lonely_bullpen)
    assert "data" in found.verdicts("fail")
    assert found.checks["data"]["found"] == "~/file is not a directory"
    assert "BULLPEN_HOME" in found.checks["data"]["advice"]


async def test_of_a_server_elsewhere_only_the_way_there_is_checked(bullpen: Bullpen, server: Server) -> None:
    bullpen.env |= {"BULLPEN_URL": server.url, "BULLPEN_HOME": "/nowhere"}
    found = await examine(bullpen)
    assert (found.code, list(found.checks)) == (0, ["python", "git", "server"])
    bullpen.env["BULLPEN_URL"] = "http://127.0.0.1:1"
    assert (await examine(bullpen)).verdicts("fail") == ["server"]


async def test_a_broken_agent_definition_breaks_only_itself(lonely_bullpen: Bullpen, house: Path) -> None:
    agents = house.parent / ".config" / "bullpen" / "agents"
    agents.mkdir(parents=True)
    (agents / "mine.toml").write_text("nmae = 'x'\n")
    done = await lonely_bullpen("doctor")
    assert done.code == 0
    assert "mine.toml" in done.out


async def test_the_agents_are_those_the_running_server_finds(
    bullpen: Bullpen, server: Server, tmp_path: Path
) -> None:
    body = {"name": "Mine", "kind": "acp", "command": [sys.executable]}
    await server.call("PUT", "/api/agents/mine", 200, json=body)
    program = tmp_path / "qwen"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    bullpen.env["PATH"] = f"{tmp_path}{os.pathsep}{bullpen.env['PATH']}"
    shown = (await bullpen("doctor")).out
    (line,) = [each for each in shown.splitlines() if each.startswith("ok    agents")]
    assert "mine" in line and "qwen" not in line
    assert "the server does not find" in shown and "qwen" in shown
    assert "→ restart it with the PATH of this shell" in shown


async def test_a_login_that_is_not_found_is_a_hint_and_no_failure(
    lonely_bullpen: Bullpen, house: Path, tmp_path: Path
) -> None:
    for name in ("claude-agent-acp", "claude", "codex-acp"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    keys = {"CODEX_API_KEY": "k", "ANTHROPIC_API_KEY": "", "ANTHROPIC_AUTH_TOKEN": ""}
    lonely_bullpen.env |= keys | {"PATH": f"{tmp_path}{os.pathsep}{lonely_bullpen.env['PATH']}"}
    found = await examine(lonely_bullpen)
    assert found.code == 0
    assert found.checks["agents"]["verdict"] == "ok"
    assert found.checks["logins"]["verdict"] == "warn"
    assert found.checks["logins"]["found"] == "no login found for claude, claude-tui"
    assert found.checks["logins"]["advice"] == "run: claude /login"
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude" / ".credentials.json").write_text("{}")
    assert "logins" not in (await examine(lonely_bullpen)).checks


async def test_the_agent_most_people_want_is_the_one_to_install(
    lonely_bullpen: Bullpen, house: Path, tmp_path: Path
) -> None:
    lonely_bullpen.env["PATH"] = str(tmp_path)
    check = (await examine(lonely_bullpen)).checks["agents"]
    assert check["found"] == "only the demo, which needs no model"
    assert check["advice"].startswith("install one, for example with: npm install -g @")
    assert "claude" in check["advice"]


def _processes_of(home: Path) -> list[psutil.Process]:
    return [
        process
        for process in psutil.process_iter(["cmdline"])
        if str(home) in (process.info["cmdline"] or ()) and process.pid != os.getpid()
    ]
