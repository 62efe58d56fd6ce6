"""A server that tests fork is like one they start by its command (tests/support/forks.py)."""

import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from support.forks import Fork, loaded
from support.server import Server


async def test_a_forked_server_is_given_what_a_started_one_is(server: Server) -> None:
    await server.restart()
    assert isinstance(server.process, Fork)
    forked = _given(server.pid)
    await server.kill()
    await server.start(prefix=("env",))
    assert isinstance(server.process, subprocess.Popen)
    assert forked == _given(server.pid)


async def test_what_an_interpreter_reads_at_its_start_is_read(tmp_path: Path, workspace: Path) -> None:
    server = Server(tmp_path / "home", workspace, {"PYTHONHASHSEED": "1"})
    await server.start()
    assert isinstance(server.process, subprocess.Popen)
    await server.close()


async def test_the_end_of_a_fork_is_told_as_that_of_any_process(server: Server) -> None:
    process = server.process
    assert process is not None and process.poll() is None
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.01)
    assert await server.stop() == 0
    await server.start()
    await server.kill()
    assert server.process is not None and server.process.poll() == -signal.SIGKILL
    server.process.kill()  # long dead: no other process of this number is meant


async def test_a_fork_fails_as_the_command_does(server: Server, tmp_path: Path) -> None:
    said = tmp_path / "said"
    with said.open("wb") as output, open(os.devnull, "rb") as nothing:
        streams = (nothing.fileno(), output.fileno(), output.fileno())
        refused = loaded().start(["serve", "--port", "none"], server.environment(), streams)
        assert refused.wait(30) == 2
    assert "port" in said.read_text()


def _given(pid: int) -> dict[str, Any]:
    """What a process has from who started it, and what it made of its signals."""
    place = Path(f"/proc/{pid}")
    status = dict(line.split(":\t", 1) for line in (place / "status").read_text().splitlines())
    return {
        "signals": {name: status[name] for name in ("SigBlk", "SigIgn", "SigCgt")},
        "umask": status["Umask"],
        "limits": (place / "limits").read_text(),
        "directory": (place / "cwd").readlink(),
        "streams": [(place / "fd" / number).readlink() for number in "012"],
        "group": (os.getpgid(pid), os.getsid(pid)),
        "nice": os.getpriority(os.PRIO_PROCESS, pid),
        "kinds of descriptors": {_kind(fd) for fd in (place / "fd").iterdir()},
    }


def _kind(fd: Path) -> str:
    """The files of its home are opened in their time."""
    target = os.readlink(fd)
    return "file" if "/home" in target else target.split(":[")[0]
