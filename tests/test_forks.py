"""A forked server (tests/support/forks.py) is like a server that is started by its command."""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from support.forks import Fork, preloaded_process
from support.server import Server


async def test_a_forked_server_inherits_the_same_as_a_started_one(server: Server) -> None:
    await server.restart()
    assert isinstance(server.process, Fork)
    forked = _inherited(server.pid)
    await server.kill()
    await server.start(prefix=("env",))
    assert isinstance(server.process, subprocess.Popen)
    assert forked == _inherited(server.pid)


async def test_a_variable_that_python_reads_at_its_start_needs_a_new_process(
    tmp_path: Path, workspace: Path
) -> None:
    server = Server(tmp_path / "home", workspace, {"PYTHONHASHSEED": "1"})
    await server.start()
    assert isinstance(server.process, subprocess.Popen)
    await server.close()


async def test_the_exit_code_of_a_fork_is_like_that_of_any_process(server: Server) -> None:
    process = server.process
    assert process is not None and process.poll() is None
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.01)
    assert await server.stop() == 0
    await server.start()
    await server.kill()
    assert server.process is not None and server.process.poll() == -signal.SIGKILL
    server.process.kill()  # it has ended: this must not kill another process with its pid


async def test_a_fork_fails_as_the_command_does(server: Server, tmp_path: Path) -> None:
    output_path = tmp_path / "output"
    with output_path.open("wb") as output, open(os.devnull, "rb") as nothing:
        streams = (nothing.fileno(), output.fileno(), output.fileno())
        refused = preloaded_process().start(["serve", "--port", "none"], server.environment(), streams)
        assert refused.wait(30) == 2
    assert "port" in output_path.read_text()


def _inherited(pid: int) -> dict[str, Any]:
    """Return what a process inherited from its parent, and how it handles signals."""
    directory = Path(f"/proc/{pid}")
    status = dict(line.split(":\t", 1) for line in (directory / "status").read_text().splitlines())
    return {
        "signals": {name: status[name] for name in ("SigBlk", "SigIgn", "SigCgt")},
        "umask": status["Umask"],
        "limits": (directory / "limits").read_text(),
        "directory": (directory / "cwd").readlink(),
        "streams": [(directory / "fd" / number).readlink() for number in "012"],
        "group": (os.getpgid(pid), os.getsid(pid)),
        "nice": os.getpriority(os.PRIO_PROCESS, pid),
        "kinds of descriptors": set(_kinds_of_descriptors(directory / "fd")),
    }


def _kinds_of_descriptors(directory: Path) -> Iterator[str]:
    """Yield the kind of each descriptor; all files of the data directory, and modules, are one kind."""
    for fd in directory.iterdir():
        with suppress(FileNotFoundError):  # closed meanwhile
            target = os.readlink(fd)  # of a module while it is imported, which only a started server does
            yield "file" if "/home" in target or target.endswith(".pyc") else target.split(":[")[0]
