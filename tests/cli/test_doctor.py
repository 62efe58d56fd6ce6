"""`bullpen doctor` finds faults of the installation and gives advice."""

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
def home(bullpen_without_server: Bullpen) -> Path:
    """Create a private data directory on which no server runs, and set a free port."""
    home = Path(bullpen_without_server.env["BULLPEN_HOME"])
    home.mkdir(mode=0o700)
    bullpen_without_server.env["BULLPEN_PORT"] = str(free_port())
    return home


async def test_no_check_fails_while_a_server_runs(bullpen: Bullpen, server: Server) -> None:
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


async def test_before_the_first_start_no_check_fails_and_no_file_is_created(
    bullpen_without_server: Bullpen,
) -> None:
    bullpen_without_server.env["BULLPEN_PORT"] = "0"
    found = await examine(bullpen_without_server)
    assert (found.code, found.verdicts("fail")) == (0, [])
    assert found.checks["server"]["verdict"] == "warn"
    assert found.checks["server"]["advice"] == "start it with: bullpen serve"
    assert not Path(bullpen_without_server.env["BULLPEN_HOME"]).exists()


async def test_files_that_others_may_read_are_named(bullpen_without_server: Bullpen, home: Path) -> None:
    (home / "token").touch(mode=0o644)
    found = await examine(bullpen_without_server)
    assert (found.code, found.verdicts("fail")) == (1, ["data", "token"])
    assert "mode 644" in found.checks["token"]["found"]
    assert "bullpen token rotate" in found.checks["token"]["advice"]
    shown = await bullpen_without_server("doctor")
    assert shown.code == 1
    assert "fail  token     others may read ~/data/token (mode 644)" in shown.out
    assert "→ close it: chmod -R go= ~/data" in shown.out


async def test_a_damaged_database_is_found(bullpen_without_server: Bullpen, home: Path) -> None:
    assert (await bullpen_without_server("db", "upgrade")).code == 0
    database = home / "bullpen.db"
    with sqlite3.connect(database) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        root, size = (
            connection.execute(query).fetchone()[0]
            for query in (
                "SELECT rootpage FROM sqlite_master WHERE name = 'events' AND type = 'table'",
                "PRAGMA page_size",
            )
        )
    connection.close()
    assert (await examine(bullpen_without_server)).checks["database"]["verdict"] == "ok"
    with database.open("r+b") as file:
        file.seek((root - 1) * size)
        file.write(b"\xff" * size)
    damaged = await examine(bullpen_without_server)
    assert (damaged.code, damaged.verdicts("fail")) == (1, ["database"])
    assert "backup" in damaged.checks["database"]["advice"]


async def test_a_file_that_is_no_database_is_found(bullpen_without_server: Bullpen, home: Path) -> None:
    database = home / "bullpen.db"
    database.touch(mode=0o600)
    database.write_bytes(b"nonsense" * 1000)
    assert (await examine(bullpen_without_server)).verdicts("fail") == ["database"]


async def test_a_newer_database_is_reported(bullpen_without_server: Bullpen, home: Path) -> None:
    assert (await bullpen_without_server("db", "upgrade")).code == 0
    with sqlite3.connect(home / "bullpen.db") as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    connection.close()
    found = await examine(bullpen_without_server)
    assert found.verdicts("fail") == ["database"]
    assert found.checks["database"]["advice"] == "upgrade Bullpen"


async def test_a_port_that_another_program_uses_is_reported(
    bullpen_without_server: Bullpen, home: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        bullpen_without_server.env["BULLPEN_PORT"] = str(other.getsockname()[1])
        found = await examine(bullpen_without_server)
    assert found.verdicts("fail") == ["port"]
    assert "BULLPEN_PORT" in found.checks["port"]["advice"]
    assert (await examine(bullpen_without_server)).checks["port"]["verdict"] == "ok"


async def test_an_invalid_setting_is_reported(bullpen_without_server: Bullpen) -> None:
    bullpen_without_server.env["BULLPEN_PORT"] = "many"
    found = await examine(bullpen_without_server)
    assert (found.code, found.verdicts("fail")) == (1, ["settings"])
    assert found.checks["settings"]["found"].startswith("BULLPEN_PORT must be a whole number")


async def test_a_missing_git_is_reported(bullpen_without_server: Bullpen, home: Path, tmp_path: Path) -> None:
    bullpen_without_server.env["PATH"] = str(tmp_path)
    found = await examine(bullpen_without_server)
    assert found.verdicts("fail") == ["git"]


@pytest.mark.parametrize(
    ("version", "verdict"),
    [
        ("2.37.7", "fail"),
        ("1.99.0", "fail"),
        ("2.38.0.windows.1", "ok"),
        ("2.39.5 (Apple Git-154)", "ok"),
        ("3.0", "ok"),
    ],
)
async def test_a_git_that_is_too_old_is_reported(
    bullpen_without_server: Bullpen, home: Path, tmp_path: Path, version: str, verdict: str
) -> None:
    git = tmp_path / "git"
    git.write_text(f"#!/bin/sh\necho 'git version {version}'\n")
    git.chmod(0o755)
    bullpen_without_server.env["PATH"] = str(tmp_path)
    check = (await examine(bullpen_without_server)).checks["git"]
    advice = "install git 2.38 or newer" if verdict == "fail" else ""
    assert (check["verdict"], check["found"], check["advice"]) == (verdict, version, advice)


async def test_a_token_that_the_server_does_not_know_is_reported(bullpen: Bullpen) -> None:
    bullpen.env["BULLPEN_TOKEN"] = "wrong"
    found = await examine(bullpen)
    assert found.verdicts("fail") == ["server"]
    assert "BULLPEN_TOKEN" in found.checks["server"]["advice"]


async def test_a_server_without_a_keeper_is_reported(bullpen: Bullpen, server: Server) -> None:
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


async def test_a_keeper_of_another_version_is_reported(bullpen_without_server: Bullpen, home: Path) -> None:
    try:
        assert run_keeper(home, "older", VERSION + 1).returncode == 0
        found = await examine(bullpen_without_server)
        assert (found.code, found.checks["keeper"]["verdict"]) == (0, "warn")
        assert f"older of version {VERSION + 1}, ours is {VERSION}" in found.checks["keeper"]["found"]
        assert "keeps its processes" in found.checks["keeper"]["advice"]
        (keeper,) = _processes_of(home)
        keeper.suspend()
        assert (await examine(bullpen_without_server)).verdicts("fail") == ["keeper"]
    finally:
        end_processes_of(home)


async def test_a_keeper_that_waits_for_a_server_is_no_fault(
    bullpen_without_server: Bullpen, home: Path
) -> None:
    try:
        assert run_keeper(home, "one").returncode == 0
        for _ in range(2):  # the check itself changes nothing
            found = await examine(bullpen_without_server)
            assert found.checks["keeper"]["verdict"] == "ok"
            assert f"version {VERSION}" in found.checks["keeper"]["found"]
    finally:
        end_processes_of(home)


async def test_a_data_directory_that_cannot_be_created_is_reported(
    bullpen_without_server: Bullpen, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    bullpen_without_server.env |= {"BULLPEN_HOME": str(tmp_path / "file" / "home"), "BULLPEN_PORT": "0"}
    found = await examine(bullpen_without_server)
    assert "data" in found.verdicts("fail")
    assert found.checks["data"]["found"] == "~/file is not a directory"
    assert "BULLPEN_HOME" in found.checks["data"]["advice"]


async def test_only_the_connection_to_a_remote_server_is_checked(bullpen: Bullpen, server: Server) -> None:
    bullpen.env |= {"BULLPEN_URL": server.url, "BULLPEN_HOME": "/nowhere"}
    found = await examine(bullpen)
    assert (found.code, list(found.checks)) == (0, ["python", "git", "server"])
    bullpen.env["BULLPEN_URL"] = "http://127.0.0.1:1"
    assert (await examine(bullpen)).verdicts("fail") == ["server"]


async def test_an_invalid_agent_definition_is_named_and_is_no_failure(
    bullpen_without_server: Bullpen, home: Path
) -> None:
    agents = home.parent / ".config" / "bullpen" / "agents"
    agents.mkdir(parents=True)
    (agents / "mine.toml").write_text("nmae = 'x'\n")
    done = await bullpen_without_server("doctor")
    assert done.code == 0
    assert "mine.toml" in done.out


async def test_the_agents_are_those_that_the_running_server_finds(
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


async def test_a_missing_login_is_a_warning_and_no_failure(
    bullpen_without_server: Bullpen, home: Path, tmp_path: Path
) -> None:
    for name in ("claude-agent-acp", "claude", "codex-acp"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    keys = {"CODEX_API_KEY": "k", "ANTHROPIC_API_KEY": "", "ANTHROPIC_AUTH_TOKEN": ""}
    bullpen_without_server.env |= keys | {
        "PATH": f"{tmp_path}{os.pathsep}{bullpen_without_server.env['PATH']}"
    }
    found = await examine(bullpen_without_server)
    assert found.code == 0
    assert found.checks["agents"]["verdict"] == "ok"
    assert found.checks["logins"]["verdict"] == "warn"
    assert found.checks["logins"]["found"] == "no login found for claude, claude-tui"
    assert found.checks["logins"]["advice"] == "run: claude /login"
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude" / ".credentials.json").write_text("{}")
    assert "logins" not in (await examine(bullpen_without_server)).checks


async def test_the_most_common_agent_is_the_one_that_is_advised(
    bullpen_without_server: Bullpen, home: Path, tmp_path: Path
) -> None:
    bullpen_without_server.env["PATH"] = str(tmp_path)
    check = (await examine(bullpen_without_server)).checks["agents"]
    assert check["found"] == "only the demo, which needs no model"
    assert check["advice"].startswith("install one, for example with: npm install -g @")
    assert "claude" in check["advice"]


def _processes_of(home: Path) -> list[psutil.Process]:
    return [
        process
        for process in psutil.process_iter(["cmdline"])
        if str(home) in (process.info["cmdline"] or ()) and process.pid != os.getpid()
    ]
