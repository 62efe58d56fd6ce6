"""The log of the server: JSON in a file, a level that can be changed, and no secrets."""

import asyncio
import json
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from bullpen.logs import REPEATS_A_MINUTE, LogRedaction
from bullpen.web.derived_secrets import DerivedSecrets, SecretKind, new_seed
from support.server import Server
from web.clients import anonymous_client

session_loop = pytest.mark.asyncio(loop_scope="session")


async def test_the_level_is_changed_while_the_server_runs(server: Server) -> None:
    assert (await server.call("GET", "/api/settings"))["logLevel"] == "info"
    path = server.home / "logs" / "server.log"

    async def refusals() -> int:
        """Cause a refusal, which is logged as a warning, and return the number of logged refusals."""
        async with anonymous_client(server) as program:
            await program.get("/api/sessions")
        return sum(json.loads(line)["event"] == "refused" for line in path.read_text().splitlines())

    count = await refusals()
    assert await server.call("PATCH", "/api/settings", 200, json={"logLevel": "error"}) == {
        "logLevel": "error"
    }
    assert await refusals() == count
    assert await server.call("PATCH", "/api/settings", 200, json={}) == {"logLevel": "error"}
    await server.call("PATCH", "/api/settings", 200, json={"logLevel": "info"})
    assert await refusals() == count + 1
    for wrong in ("loud", "INFO", "", 10):
        await server.call("PATCH", "/api/settings", 400, json={"logLevel": wrong})


# The tests log in another process, because pytest installs its own handlers.
SET_UP_LOGGING = """
import logging, os, sys
from pathlib import Path
import structlog
from bullpen import logs

logs.configure("debug", Path(sys.argv[1]), hidden=("hunter2-given",))
log, theirs, secret = structlog.get_logger(), logging.getLogger("another.library"), sys.argv[2]
"""


class LogOutput:
    """The log entries and the output of a process that logs as the server does."""

    def __init__(self, directory: Path, program: str, secret: str = "") -> None:
        command = [sys.executable, "-c", SET_UP_LOGGING + textwrap.dedent(program), str(directory), secret]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
        file = (directory / "server.log").read_text()
        self.entries: list[dict[str, Any]] = [json.loads(line) for line in file.splitlines()]
        self.everything = file + done.stdout + done.stderr


def test_an_entry_is_an_object_with_time_level_and_event(tmp_path: Path) -> None:
    program = """
        log.info("hello", number=7)
        theirs.warning("watch %s", "out")
        logs.set_level("error")
        log.info("not this")
        theirs.warning("nor this")
    """
    ours, theirs = LogOutput(tmp_path, program).entries
    assert (ours["event"], ours["level"], ours["number"]) == ("hello", "info", 7)
    assert ours["timestamp"].endswith("Z")
    assert (theirs["event"], theirs["level"]) == ("watch out", "warning")


LOG_SECRET_IN_MANY_PLACES = """
    class Holder:
        def __repr__(self):
            return f"Holder({secret})"

    log.info(f"in the event {secret}")
    log.info("in a value", path=f"/x?token={secret}", url=f"http://h/#code={secret}", sent=f"Bearer {secret}")
    log.info("deep", value={"a": [{"b": (secret, f"bullpen={secret}; x")}]}, it=Holder(), raw=secret.encode())
    log.info("named", owner_token="another", cookie="another", headers={"Authorization": "another"})
    logging.getLogger("uvicorn.error").error("from %s", secret)
    theirs.error("that does not fit: %d", secret)
    try:
        raise ValueError(secret)
    except ValueError:
        log.exception("failed")
        theirs.exception("failed too")
"""


@pytest.mark.parametrize("kind", [*SecretKind, "given"])
def test_no_secret_is_logged_wherever_it_occurs(tmp_path: Path, kind: SecretKind | str) -> None:
    secret = (
        DerivedSecrets("server secret").make(kind, new_seed())
        if isinstance(kind, SecretKind)
        else "hunter2-given"
    )
    output = LogOutput(tmp_path, LOG_SECRET_IN_MANY_PLACES, secret)
    assert len(output.entries) == 7
    assert output.everything.count("hidden") > 20
    assert secret not in output.everything
    assert "another" not in output.everything


def test_a_warning_that_repeats_is_counted_and_not_written(tmp_path: Path) -> None:
    program = """
        logs.clock.monotonic = lambda: 60.0
        for number in range(1000):
            log.warning("refused", number=number)
            theirs.error("no good: %s", number)
            log.info("done", number=number)
        log.warning("another")
        logs.clock.monotonic = lambda: 120.0
        log.warning("refused", number=1000)
    """
    events = [entry["event"] for entry in LogOutput(tmp_path, program).entries]
    assert events.count("refused") == REPEATS_A_MINUTE + 1
    assert sum(event.startswith("no good") for event in events) == REPEATS_A_MINUTE
    assert events.count("done") == 1000
    assert events.count("another") == 1
    left_out = 1000 - REPEATS_A_MINUTE
    assert f"{left_out} more entries in a minute were left out: refused" in events
    assert f"{left_out} more entries in a minute were left out: no good: %s" in events


def test_a_failed_write_to_the_log_is_reported_without_the_entry(tmp_path: Path) -> None:
    program = """
        log.info("first")
        logs.redaction.add_literals((secret,))
        for handler in logging.getLogger().handlers[1:]:
            handler.stream.close()
        theirs.error("from %s", secret)
    """
    output = LogOutput(tmp_path, program, "my-own-secret")
    assert "cannot write" in output.everything
    assert "my-own-secret" not in output.everything


def test_an_entry_without_a_secret_is_not_changed() -> None:
    entry = {
        "event": "ended",
        "code": 7,
        "error": "not_found",
        "path": "/api/sessions",
        "token_id": "t1",
        "n": None,
    }
    assert LogRedaction()(None, "", dict(entry)) == entry


@session_loop
async def test_a_client_that_leaves_during_a_request_is_not_logged_as_an_error(shared_server: Server) -> None:
    session = await shared_server.new_session()
    path = f"/api/sessions/{session['id']}/leave"
    for _ in range(5):
        _, writer = await asyncio.open_connection("127.0.0.1", shared_server.port)
        head = {
            "Host": f"127.0.0.1:{shared_server.port}",
            "Authorization": f"Bearer {shared_server.token}",
            "Content-Type": "application/json",
            "Content-Length": "100",
            "Idempotency-Key": "half",
        }
        lines = "".join(f"{name}: {value}\r\n" for name, value in head.items())
        writer.write(f'POST {path} HTTP/1.1\r\n{lines}\r\n{{"mess'.encode())
        await writer.drain()
        writer.close()
        await writer.wait_closed()
    audit_log = shared_server.home / "logs" / "audit.log"
    async with asyncio.timeout(30):
        while sum(json.loads(line).get("path") == path for line in audit_log.read_text().splitlines()) < 5:
            await asyncio.sleep(0.05)
    assert "ClientDisconnect" not in (shared_server.home / "logs" / "server.log").read_text()
    await shared_server.call("DELETE", f"/api/sessions/{session['id']}?purge=true")
