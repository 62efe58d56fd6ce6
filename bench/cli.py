"""Measure how fast `bullpen --help` and `bullpen ls` start, compared with git, tmux and Python.

    .venv/bin/python bench/cli.py [--quick] [--rounds N]

Every round runs each command once, so that other load on the machine affects all of them.
"""

import argparse
import os
import platform
import shutil
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path

from harness.report import Results, Row, Target, table, values_table, verdicts
from systems.bullpen import COMMAND, Bullpen

OURS = "Bullpen"
ROUNDS, QUICK = 41, 5

ROWS = [
    Row("help", "--help", "ms", [Target(60)]),
    Row("ls", "ls, one session", "ms", [Target(110)]),
]
EXPLAINING = [
    Row("help cpu", "CPU of --help", "ms"),
    Row("ls cpu", "CPU of ls", "ms"),
    Row("reference", "start of another program", "ms"),
    Row("reference cpu", "CPU of that start", "ms"),
]
REFERENCES = {"git --version": ["git", "--version"], "tmux -V": ["tmux", "-V"]}


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure how fast the command line starts.")
    parser.add_argument(
        "--quick", action="store_true", help="a few rounds, to check that the benchmark works"
    )
    parser.add_argument("--rounds", type=int, help=f"number of runs of each command (default {ROUNDS})")
    options = parser.parse_args()
    rounds = options.rounds or (QUICK if options.quick else ROUNDS)
    with Bullpen() as system:
        results = measure(commands(), environment_of(system), rounds)
    print_report(results, rounds)


def environment_of(system: Bullpen) -> dict[str, str]:
    """Return the environment of a user's shell, by which the command finds the server."""
    return {**os.environ, "HOME": str(system.home), "BULLPEN_HOME": str(system.data)}


def commands() -> dict[tuple[str, str], list[str]]:
    """Return the commands by row and column of the report."""
    ours: dict[tuple[str, str], list[str]] = {
        ("help", OURS): [str(COMMAND), "--help"],
        ("ls", OURS): [str(COMMAND), "ls"],
    }
    references = {name: command for name, command in REFERENCES.items() if shutil.which(command[0])}
    references["python -c pass"] = [sys.executable, "-c", "pass"]
    return ours | {("reference", name): command for name, command in references.items()}


def measure(chosen: dict[tuple[str, str], list[str]], env: dict[str, str], rounds: int) -> Results:
    results: Results = defaultdict(lambda: defaultdict(list))
    for command in chosen.values():
        run(command, env)  # the first run reads from the disk
    for _ in range(rounds):
        for (row, column), command in chosen.items():
            took, cpu = run(command, env)
            results[row][column].append(took)
            results[f"{row} cpu"][column].append(cpu)
    return results


def run(command: list[str], env: dict[str, str]) -> tuple[float, float]:
    """Run a command; return its duration and its CPU time in milliseconds."""
    began = time.perf_counter()
    process = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    took = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{command} ended with {process.returncode}")
    return took * 1000, (usage.ru_utime + usage.ru_stime) * 1000


def print_report(results: Results, rounds: int) -> None:
    print(f"{platform.platform()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the end")
    print(f"Python {platform.python_version()}; the median of {rounds} rounds each\n")
    print(values_table([*ROWS, *EXPLAINING], [OURS, *results["reference"]], results))
    print("\n" + table(["", "target"], [[row.title, verdicts(row, OURS, results)] for row in ROWS]))


if __name__ == "__main__":
    if not Path(COMMAND).exists():
        sys.exit(f"there is no {COMMAND}; run: make setup")
    main()
