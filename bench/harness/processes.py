"""Processes of a system under test: start them in their own home, measure CPU and memory, and end them."""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

START_SECONDS = 30.0


def cpu_seconds(pids: Iterable[int]) -> float:
    """Return user and system time of these processes, with ended threads, without children."""
    # The id of another process's CPU clock, as clock_getcpuclockid(3) makes it: nanoseconds, not 10 ms ticks.
    return sum(time.clock_gettime((~pid << 3) | 2) for pid in pids)


def settled_cpu_seconds(pids: list[int]) -> float:
    """Return the CPU time once the processes are idle, so that work after the last byte is counted."""
    deadline = time.monotonic() + 5
    before = cpu_seconds(pids)
    while time.monotonic() < deadline:
        time.sleep(0.1)
        now = cpu_seconds(pids)
        if now - before < 0.002:
            return now
        before = now
    return before


def memory_bytes(pids: Iterable[int]) -> tuple[int, int]:
    """Return the resident (RSS) and proportional (PSS) memory of these processes together."""
    rss = pss = 0
    for pid in pids:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            name, _, rest = line.partition(":")
            if name == "Rss":
                rss += int(rest.split()[0]) * 1024
            elif name == "Pss":
                pss += int(rest.split()[0]) * 1024
    return rss, pss


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def environment(home: Path) -> dict[str, str]:
    """Return the environment of every server and so of every shell."""
    return {
        "HOME": str(home),
        "PATH": os.environ["PATH"],
        "SHELL": "/bin/sh",
        "PS1": "$ ",
        "TERM": "xterm-256color",
        "LANG": "C.UTF-8",
    }


def processes_of(home: Path) -> list[int]:
    """Return every process whose command line or environment contains the home."""
    mark = os.fsencode(home)
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if mark in (folder / "cmdline").read_bytes() or mark in (folder / "environ").read_bytes():
                found.append(int(folder.name))
    return found


class Server:
    """A server process with its log in `home`."""

    def __init__(
        self, command: Sequence[str | Path], home: Path, env: dict[str, str], cwd: Path | None = None
    ) -> None:
        self.log = home / "log"
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                command,
                cwd=cwd,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self.process.pid

    def wait_for_port(self, port: int) -> None:
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and self.process.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
            except OSError:
                time.sleep(0.02)
            else:
                return
        raise RuntimeError(f"no server listens on its port; its log ends:\n{self.log_tail()}")

    def log_tail(self) -> str:
        return self.log.read_text(errors="replace")[-2000:]

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(5)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
