"""Measure what the sandbox costs: the start of a program, and the throughput of its terminal.

    .venv/bin/python bench/sandbox.py [--quick]

Each round runs the same program without and with the sandbox, in this order.
"""

import argparse
import os
import pty
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bullpen import config
from bullpen.domain.limits import ResourceLimits
from bullpen.sandbox.cgroups import ControlGroups
from bullpen.sandbox.command import command_for
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
    return 0 if options.quick or added <= MAX_START_SECONDS else 1


class Sandbox:
    """The sandbox of a run in one workspace."""

    def __init__(self, directory: Path, workspace: Path) -> None:
        self._workspace = str(workspace)
        self._mechanism = find_mechanism(os.environ)
        settings = config.load({"home": str(directory / "home")}, os.environ)
        machine = machine_paths(settings, [str(directory)], os.environ)
        self._profile = plan_profile(
            "workspace", machine, RunPaths(workspace=self._workspace, git=git_paths(workspace))
        )
        self._groups = ControlGroups.find(f"bullpen-bench-{os.getpid()}")
        self._limits = RunLimits(LIMITS, self._groups)

    def command(self, argv: list[str]) -> list[str]:
        """Return the command in the sandbox, which first joins a new control group if there are any."""
        group = self._groups.begin("bench", str(time.monotonic_ns()), LIMITS) if self._groups else None
        inside = command_for(self._mechanism, self._profile, argv, self._workspace)
        return self._limits.command(self._profile, inside, os.environ, group)

    def close(self) -> None:
        """Remove the control groups."""
        if self._groups:
            self._groups.sweep()


def start(argv: list[str]) -> float:
    """Return the seconds until a program has started and ended."""
    began = time.monotonic()
    subprocess.run(argv, check=True)
    return time.monotonic() - began


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
