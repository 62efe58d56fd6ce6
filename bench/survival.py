"""Kill servers while their terminals print and their agents work, and see what is lost.

    .venv/bin/python bench/survival.py [--quick] [NAME…]

Each server is stopped with SIGKILL and SIGTERM while a shell counts 100 times a second. Then it is started
again, and the viewer connects again. Programs that a server starts beside it (a keeper, a runner, tmux) are
not stopped. Servers that run agents by protocol are also stopped while the demo agent waits for a permission.
The last table has costs: start, memory, echo, flood.
"""

import argparse
import os
import platform
import re
import shlex
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TypeVar

import peers
from children import counter
from harness import websocket
from harness.measures import Figures, echo, idle_memory, throughput
from harness.report import Results, Row, table, values_table
from systems import Bullpen, System, Terminal
from systems.cao import Cao
from systems.cloudcli import Cloudcli
from systems.hapi import Hapi
from systems.jupyter import Jupyter
from systems.opencode import Opencode
from systems.wetty import Wetty

SYSTEMS: list[type[System]] = [Bullpen, Cao, Cloudcli, Hapi, Jupyter, Opencode, Wetty]
PEERS = ["cao", "cloudcli", "hapi", "jupyter", "opencode", "wetty"]
SIGNALS = (signal.SIGKILL, signal.SIGTERM)
NUMBER = re.compile(rb"<(\d+)>")
STOP_SECONDS = 20.0
Value = TypeVar("Value")
ROWS = [
    Row("ready", "start to ready", "ms"),
    Row("first", "first terminal, to its first byte", "ms"),
    Row("later", "later terminals, to their first byte", "ms"),
    Row("echo", "echo, p50", "ms"),
    Row("flood", "flood", "MB/s"),
    Row("memory", "memory with ten terminals, PSS", "MB"),
]


@dataclass(frozen=True)
class Survival:
    """What happened to a counting shell while its server was away."""

    program: str
    lost: str
    doubled: str

    @classmethod
    def ended(cls) -> "Survival":
        return cls("ended", "–", "–")


class Viewer:
    """The numbers that one viewer has seen, over all its connections."""

    def __init__(self) -> None:
        self.seen: Counter[int] = Counter()
        self._rest = b""

    def feed(self, data: bytes | memoryview) -> None:
        self._rest += bytes(data)
        for match in NUMBER.finditer(self._rest):
            self.seen[int(match[1])] += 1
        self._rest = self._rest[self._rest.rfind(b">") + 1 :]

    def read_until(self, terminal: Terminal, number: int, seconds: float) -> bool:
        """Read until a number was seen; return whether it came in time."""
        deadline = time.monotonic() + seconds
        while max(self.seen, default=0) < number:
            if time.monotonic() > deadline:
                return False
            self.feed(terminal.read())
        return True


def survive(kind: type[System], number: signal.Signals) -> Survival:
    """Stop a server while a shell counts, start it again, and return what its viewer has seen."""
    with kind() as system:
        terminal = system.open()
        file = system.home / "count"
        command = [sys.executable, "-I", "-S", str(counter.__file__), str(file)]
        terminal.type(f"exec {shlex.join(command)}\r".encode())
        viewer = Viewer()
        if not viewer.read_until(terminal, 200, 30):
            raise RuntimeError(f"{kind.name}: the shell does not count")
        stop(system, number)
        with suppress(OSError, ValueError):  # what was sent before the end
            while True:
                viewer.feed(terminal.read())
        time.sleep(1)
        counted = last_number(file)
        time.sleep(0.3)
        if last_number(file) == counted:
            return Survival.ended()
        system.start_again()
        again = system.reopen(terminal)
        if again is None:
            return Survival("lives, out of reach", "–", "–")
        if not viewer.read_until(again, last_number(file) + 100, 30):
            return Survival("lives, out of reach", "–", "–")
        again.close()
        return Survival("lives", *losses(viewer.seen))


def permission_survives(kind: type[System], number: signal.Signals) -> list[str]:
    """Stop a server while an agent waits for a permission; return what became of permission and turn."""
    with kind() as system:
        system.prompt("edit demo.txt")
        request = wait_for(system.open_request)
        if request is None:
            raise RuntimeError(f"{kind.name}: the agent requests no permission")
        stop(system, number)
        time.sleep(1)
        system.start_again()
        if wait_for(system.open_request) != request:
            return ["gone", "–"]
        system.allow(request)
        return ["open", "finished" if wait_for((system.home / "demo.txt").exists) else "stopped"]


def wait_for(condition: Callable[[], Value]) -> Value | None:
    """Return the first true value of a condition; None if it has none in time."""
    deadline = time.monotonic() + STOP_SECONDS
    while time.monotonic() < deadline:
        if value := condition():
            return value
        time.sleep(0.1)
    return None


def losses(seen: Counter[int]) -> tuple[str, str]:
    """Return how many of the numbers were never shown, and how many were shown more than once."""
    expected = range(min(seen), max(seen) + 1)
    lost = sum(1 for each in expected if each not in seen)
    doubled = sum(1 for count in seen.values() if count > 1)
    return str(lost), str(doubled)


def stop(system: System, number: signal.Signals) -> None:
    """Send a signal to the server and wait for its end; kill it if it ignores the signal."""
    system.server.process.send_signal(number)
    try:
        system.server.process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        system.server.process.kill()
        system.server.process.wait()


def last_number(file: Path) -> int:
    return int(file.read_text().split()[-1])


def costs(kind: type[System], keys: int, megabytes: int) -> Figures:
    """Measure a new server: its start, its terminals, its memory."""
    began = time.perf_counter()
    with kind() as system:
        figures: Figures = {"ready": (time.perf_counter() - began) * 1000}
        figures["first"] = first_byte(system)
        figures["later"] = median(first_byte(system) for _ in range(5))
        figures["memory"] = idle_memory(system, 10)["memory pss"]
        if not system.redraws:  # a key and a flood cannot be found in a screen
            figures["echo"] = echo(system, keys)[0]
            with suppress(OSError):  # a system that loses bytes of a flood has no figure
                figures["flood"] = throughput(system, "plain", megabytes)["throughput plain"]
    return figures


def first_byte(system: System) -> float:
    began = time.perf_counter()
    terminal = system.open()
    terminal.read()
    milliseconds = (time.perf_counter() - began) * 1000
    terminal.close()
    return milliseconds


def main() -> None:
    parser = argparse.ArgumentParser(description="Kill servers while their terminals print.")
    parser.add_argument(
        "--quick", action="store_true", help="one round of everything, to check that it works"
    )
    parser.add_argument("names", nargs="*", help="only these systems")
    options = parser.parse_args()
    websocket.SILENCE = 20
    for problem in peers.install(PEERS):
        print(f"not installed: {problem}", file=sys.stderr)
    kinds = [each for each in SYSTEMS if not each.missing()]
    if options.names:
        kinds = [each for each in kinds if each.name in options.names]
    rounds, keys, megabytes = (1, 50, 5) if options.quick else (3, 300, 50)
    results: Results = defaultdict(lambda: defaultdict(list))
    lines, agents = [], []
    for kind in kinds:
        for number in SIGNALS:
            outcome = survive(kind, number)
            lines.append([kind.name, number.name, outcome.program, outcome.lost, outcome.doubled])
            print(*lines[-1], file=sys.stderr, flush=True)
            if kind.runs_agents:
                agents.append([kind.name, number.name, *permission_survives(kind, number)])
                print(*agents[-1], file=sys.stderr, flush=True)
    for _ in range(rounds):
        for kind in kinds:
            for row, figure in costs(kind, keys, megabytes).items():
                results[row][kind.name].append(figure)
            print(
                kind.name,
                {row: each[kind.name][-1:] for row, each in results.items()},
                file=sys.stderr,
                flush=True,
            )
    print(f"{platform.platform()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the end")
    print("; ".join(kind.versions() for kind in kinds) + "\n")
    print(table(["server", "stopped by", "program", "numbers lost", "numbers shown twice"], lines) + "\n")
    print(table(["server", "stopped by", "open permission", "turn"], agents) + "\n")
    print(values_table(ROWS, [kind.name for kind in kinds], results))


if __name__ == "__main__":
    main()
