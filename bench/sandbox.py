"""Measure what the sandbox costs: the start of a program, the throughput of its terminal, and calls of git.

    .venv/bin/python bench/sandbox.py [--quick]

Each round runs the same program without and with the sandbox, in this order.
"""

import argparse
import asyncio
import os
import pty
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from bullpen import config
from bullpen.domain.limits import ResourceLimits
from bullpen.git.changes import read_status
from bullpen.git.command import CONFINEMENT
from bullpen.git.diff import read_diff
from bullpen.git.git_directories import GitDirectories
from bullpen.sandbox.cgroups import ControlGroups
from bullpen.sandbox.command import command_for
from bullpen.sandbox.git_calls import GitSandbox
from bullpen.sandbox.git_paths import git_paths
from bullpen.sandbox.machine import machine_paths
from bullpen.sandbox.mechanism import find_mechanism
from bullpen.sandbox.profile import RunPaths, plan_profile
from bullpen.sandbox.run_limits import RunLimits

MAX_START_SECONDS = 0.025  # that the sandbox may add at the median
ROUNDS, QUICK_ROUNDS = 60, 5
FLOOD = "head -c 67108864 /dev/zero | tr '\\0' x | fold -w 80"
QUICK_FLOOD = FLOOD.replace("67108864", "65536")
READ_BYTES = 1 << 16
LIMITS = ResourceLimits(memory=1 << 30, processes=1000)


def main() -> int:
    parser = argparse.ArgumentParser(description="Measure the sandbox.")
    parser.add_argument("--quick", action="store_true", help="check that the benchmark works")
    options = parser.parse_args()
    mechanism = find_mechanism(os.environ)
    with tempfile.TemporaryDirectory() as directory:
        workspace = Path(directory) / "workspace"
        workspace.mkdir()
        subprocess.run(["git", "init", "--quiet", str(workspace)], check=True)
        sandbox = Sandbox(Path(directory), workspace)
        rounds = QUICK_ROUNDS if options.quick else ROUNDS
        starts = [(start(["true"]), start(sandbox.command(["true"]))) for _ in range(rounds)]
        flood = ["sh", "-c", QUICK_FLOOD if options.quick else FLOOD]
        floods = [(drain(flood), drain(sandbox.command(flood))) for _ in range(3)]
        calls = {
            name: [asyncio.run(time_git(read, workspace, sandbox)) for _ in range(rounds)]
            for name, read in (("status", read_status), ("diff", read_diff))
        }
        sandbox.close()
    added = statistics.median(inside - outside for outside, inside in starts)
    outside, inside = (statistics.median(times) for times in zip(*starts, strict=True))
    ratio = statistics.median(direct / sandboxed for direct, sandboxed in floods)
    print(f"| with {mechanism.name} | without | with | difference |\n|---|---|---|---|")
    print(
        f"| start of a program, median of {rounds} | {outside * 1000:.1f} ms | {inside * 1000:.1f} ms "
        f"| {added * 1000:.1f} ms, target {MAX_START_SECONDS * 1000:.0f} ms |"
    )
    print(f"| throughput of a terminal, median of 3 | 1 | {ratio:.2f} | |")
    for name, times in calls.items():
        outside, inside = (statistics.median(each) * 1000 for each in zip(*times, strict=True))
        print(
            f"| git {name} by the server, median of {rounds} | {outside:.1f} ms | {inside:.1f} ms "
            f"| {inside - outside:.1f} ms |"
        )
    return 0 if options.quick or added <= MAX_START_SECONDS else 1


class Sandbox:
    """The sandbox of a run in one workspace."""

    def __init__(self, directory: Path, workspace: Path) -> None:
        self._workspace = str(workspace)
        self._mechanism = find_mechanism(os.environ)
        settings = config.load({"home": str(directory / "home")}, os.environ)
        machine = machine_paths(settings, [str(directory)], os.environ)
        self.git = GitSandbox(settings, lambda _: machine)
        self._profile = plan_profile(
            "workspace", machine, RunPaths(workspace=self._workspace, git=git_paths(workspace))
        )
        self._groups = ControlGroups.find(f"bullpen-bench-{os.getpid()}")
        self._limits = RunLimits(LIMITS, self._groups)

    def command(self, argv: list[str]) -> list[str]:
        """Return the command in the sandbox, which first joins a new control group if there are any."""
        group = self._groups.begin("bench", str(time.monotonic_ns()), LIMITS) if self._groups else None
        inside = command_for(self._mechanism, self._profile, argv, self._workspace)
        return self._limits.command(self._profile, inside, group)

    def close(self) -> None:
        """Remove the control groups."""
        if self._groups:
            self._groups.sweep()


def start(argv: list[str]) -> float:
    """Return the seconds until a program has started and ended."""
    began = time.monotonic()
    subprocess.run(argv, check=True)
    return time.monotonic() - began


async def time_git(
    read: Callable[[GitDirectories], Awaitable[object]], workspace: Path, sandbox: Sandbox
) -> tuple[float, float]:
    """Return the seconds of the same calls of git without and with the sandbox of the server."""
    times = []
    for wrap in (None, sandbox.git.wrap):
        CONFINEMENT.wrap = wrap
        began = time.monotonic()
        await read(GitDirectories.main(workspace / ".git", workspace))
        times.append(time.monotonic() - began)
    return times[0], times[1]


def drain(argv: list[str]) -> float:
    """Return the seconds until a program in a terminal has printed everything."""
    began = time.monotonic()
    pid, terminal = pty.fork()
    if pid == 0:
        os.execvp(argv[0], argv)
    try:
        while os.read(terminal, READ_BYTES):
            pass
    except OSError:  # the program has ended
        pass
    os.close(terminal)
    os.waitpid(pid, 0)
    return time.monotonic() - began


if __name__ == "__main__":
    sys.exit(main())
