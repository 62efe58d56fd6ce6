"""Commands that run in terminals: `bullpen exec`, `bullpen new -- …` and `bullpen worker add … -- …`."""

import asyncio
import signal
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import pytest

from support.commands import Bullpen, CommandResult
from support.forks import start_bullpen
from support.server import Server
from support.tmux import Tmux


async def workers(server: Server, session: dict[str, Any]) -> list[tuple[str, str, int, int | None]]:
    found = (await server.call("GET", f"/api/sessions/{session['id']}/workers"))["workers"]
    return [(each["role"], each["state"], each["run"], each["exitCode"]) for each in found]


async def test_exec_prints_only_the_output_and_exits_with_the_code_of_the_command(
    bullpen: Bullpen, server: Server
) -> None:
    session = await server.new_session(title="job")
    script = "echo one; echo two >&2; exit $CODE"
    command = ("env", "CODE=3", "sh", "-c", script)
    assert await bullpen("exec", "job", "--", *command) == CommandResult(3, "one\ntwo\n", "")
    assert await workers(server, session) == [("env", "exited", 1, 3)]
    assert await bullpen("exec", "job", "--", *command) == CommandResult(3, "one\ntwo\n", "")
    assert await bullpen("exec", "job", "--", "env", "true") == CommandResult(0, "", "")
    assert await workers(server, session) == [("env", "terminated", 2, 3), ("env", "exited", 1, 0)]


async def test_a_command_ends_when_the_reader_of_its_output_has_ended(
    bullpen: Bullpen, server: Server
) -> None:
    session = await server.new_session(title="job")
    command = f"{sys.executable} -m bullpen exec job -- yes | head -n 2"
    piped = subprocess.run(
        ["bash", "-c", command], env=bullpen.env, capture_output=True, text=True, check=True
    )
    assert (piped.stdout, piped.stderr) == ("y\ny\n", "")
    [worker] = (await server.call("GET", f"/api/sessions/{session['id']}/workers"))["workers"]
    await server.worker_in(session["id"], worker["id"], "terminated")


async def test_a_command_that_does_not_exist_is_refused_and_leaves_nothing(
    bullpen: Bullpen, server: Server, workspace: Path
) -> None:
    session = await server.new_session(title="job")
    (workspace / "data").write_text("no program")
    for name in ("no-such-program", "./missing", "./data"):
        refused = CommandResult(1, "", f"bullpen: cannot start {name}: there is no such program\n")
        assert await bullpen("exec", "job", "--", name) == refused
        assert await bullpen("worker", "add", "job", "--", name) == refused
        assert await bullpen("new", "-d", str(workspace), "--", name) == refused
    assert await workers(server, session) == []
    assert [each["title"] for each in (await server.call("GET", "/api/sessions"))["sessions"]] == ["job"]
    nothing = await bullpen("exec", "job")
    assert nothing == CommandResult(
        2, "", "bullpen: name the command after --, as in: bullpen exec my-session -- make test\n"
    )


async def test_exec_says_why_a_command_does_not_start(
    bullpen: Bullpen, server: Server, workspace: Path
) -> None:
    await server.new_session(title="job")
    (workspace / "script").write_text("#!/no/such/interpreter\n")
    (workspace / "script").chmod(0o755)
    failed = await bullpen("exec", "job", "--", "./script")
    assert (failed.code, failed.out) == (1, "")
    assert "cannot start ./script: No such file or directory" in failed.err


@pytest.mark.parametrize(
    ("script", "presses", "code", "state"),
    [
        ("echo ready; sleep 1000", 1, 130, "exited"),
        ("trap 'echo more' INT; echo ready; while :; do sleep 0.1; done", 2, 129, "terminated"),
    ],
    ids=["a program that ends", "a program that goes on"],
)
async def test_ctrl_c_ends_the_command_of_exec_and_again_if_it_goes_on(
    bullpen: Bullpen, server: Server, script: str, presses: int, code: int, state: str
) -> None:
    session = await server.new_session(title="job")
    with TemporaryFile() as given, TemporaryFile() as out, TemporaryFile() as err:
        process = start_bullpen(("exec", "job", "--", "sh", "-c", script), bullpen.env, (given, out, err))
        try:
            async with asyncio.timeout(60):
                for text in (b"ready", b"more")[:presses]:
                    while out.seek(0) or text not in out.read():
                        await asyncio.sleep(0.02)
                    process.send_signal(signal.SIGINT)
                while (ended := process.poll()) is None:
                    await asyncio.sleep(0.02)
        finally:
            process.kill()
    assert (ended, (await workers(server, session))[0][1]) == (code, state)


async def test_exec_goes_on_when_the_server_is_killed_and_started_again(
    bullpen: Bullpen, server: Server, workspace: Path
) -> None:
    await server.new_session(title="job")
    script = "echo begun; while [ ! -e go ]; do sleep 0.05; done; echo ended; exit 3"
    with TemporaryFile() as given, TemporaryFile() as out, TemporaryFile() as err:
        process = start_bullpen(("exec", "job", "--", "sh", "-c", script), bullpen.env, (given, out, err))
        try:
            async with asyncio.timeout(60):
                while out.seek(0) or b"begun" not in out.read():
                    await asyncio.sleep(0.02)
                await server.restart()
                (workspace / "go").touch()
                while (code := process.poll()) is None:
                    await asyncio.sleep(0.02)
        finally:
            process.kill()
        out.seek(0)
        assert (code, out.read()) == (3, b"begun\nended\n")


async def test_exec_leaves_the_terminal_of_the_user_as_it_was(server: Server, tmux: Tmux) -> None:
    await server.new_session(title="job")
    await tmux.enter("echo before")
    script = "printf '\\033[?1049h\\033[?25l'; echo in the way; exit 3"
    await tmux.enter(f'bullpen exec job -- sh -c "{script}"; echo code-$?')
    shown = await tmux.until("\ncode-3\n")
    assert "\nbefore\n" in shown
    assert "\nin the way\n" not in shown


async def test_the_command_of_a_terminal_outlives_the_server_and_is_run_again_by_a_restart(
    bullpen: Bullpen, server: Server, workspace: Path
) -> None:
    started = await bullpen("new", "-dq", str(workspace), "--", "sh", "-c", "echo run >> runs; exec cat")
    session = {"id": started.out.strip()}
    added = await bullpen("worker", "add", session["id"], "-q", "--", "sleep", "1000")
    async with asyncio.timeout(60):
        while [state for _, state, _, _ in await workers(server, session)] != ["active", "active"]:
            await asyncio.sleep(0.02)
    await server.kill()
    await server.start()
    assert await workers(server, session) == [("sh", "active", 1, None), ("sleep", "active", 1, None)]
    assert (workspace / "runs").read_text() == "run\n"
    terminal = (await server.call("GET", f"/api/sessions/{session['id']}/workers"))["workers"][0]
    path = f"/api/sessions/{session['id']}/workers/{terminal['id']}"
    assert terminal["name"] == "echo run >> runs; exec cat"
    async with server.socket(f"/ws/session/{session['id']}/worker/{terminal['id']}") as ws:
        await ws.send('{"type": "input", "n": 1, "data": "\\u0004"}')
        async with asyncio.timeout(60):
            while '"exit"' not in str(await ws.recv()):
                continue
    await server.call("POST", f"{path}/restart", 200)
    async with asyncio.timeout(60):
        while (workspace / "runs").read_text() != "run\nrun\n":
            await asyncio.sleep(0.02)
    assert added.out.strip()
