"""Measure the terminals of Bullpen and of other systems in turns, and print ratios with their range.

    .venv/bin/python bench/terminal.py [--quick] [--rounds N] [--systems NAME…]

Every round takes each measure of each system in turn, so that other load on the machine affects all of them.
Ratios are computed within a round. All systems have the same client (harness/websocket.py).
"""

import argparse
import os
import platform
import sys
from collections import defaultdict
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial

import peers
from harness.measures import (
    Figures,
    bare_throughput,
    echo_beside_flood,
    echo_beside_stopped_viewer,
    idle_echo,
    idle_memory,
    many_terminals,
    spawn,
    throughput,
)
from harness.processes import settled_cpu_seconds
from harness.report import Results, Row, Target, ratios_table, values_table
from systems import SYSTEMS, System

OURS = "Bullpen"
NODE = "node-pty + ws"
BARE = "bare pty"


@dataclass(frozen=True)
class Sizes:
    rounds: int
    megabytes: int
    keys: int
    spawns: int
    terminals: int
    seconds: float


FULL = Sizes(rounds=5, megabytes=100, keys=600, spawns=20, terminals=200, seconds=5)
QUICK = Sizes(rounds=1, megabytes=4, keys=30, spawns=3, terminals=10, seconds=1)

ROWS = [
    Row(
        "throughput plain",
        "throughput",
        "MB/s",
        [Target(1.2, True, NODE), Target(0.75, True, BARE)],
    ),
    Row("throughput coloured", "throughput, coloured", "MB/s"),
    Row("cpu plain", "CPU per GB", "s", [Target(0.8, against=NODE)]),
    Row("cpu coloured", "CPU per GB, coloured", "s"),
    Row("client plain", "CPU of the client in the flood", "% of a core", compared=False),
    Row("echo idle p50", "echo, idle, p50", "ms", [Target(1.7, against=NODE)]),
    Row("echo idle p99", "echo, idle, p99", "ms"),
    Row("echo flood p50", "echo beside a flood, p50", "ms"),
    Row("echo flood p99", "echo beside a flood, p99", "ms", [Target(0.7, against=NODE)]),
    Row("flood beside echo", "throughput of that flood", "MB/s"),
    Row("asleep echo", "echo with a viewer that never reads ÷ without", "×", [Target(1.1)]),
    Row("asleep memory", "memory of that viewer", "MB", [Target(3)]),
    Row(
        "many_terminals",
        "CPU of terminals with ten lines a second",
        "% of a core",
        [Target(1.5, against=NODE)],
    ),
    Row("spawn", "spawn to first byte, p50", "ms"),
    Row("memory rss", "memory of idle terminals, RSS", "MB", [Target(120)]),
    Row("memory pss", "memory of idle terminals, PSS", "MB"),
]


def main() -> None:
    options = parse_arguments()
    sizes = QUICK if options.quick else FULL
    for problem in peers.install():
        progress(f"peer left out: {problem}")
    chosen = choose_systems(options.systems)
    results = measure(chosen, sizes, options.rounds or sizes.rounds)
    # a quick run is too small for verdicts
    rows = [replace(row, targets=()) for row in ROWS] if options.quick else ROWS
    print_report(chosen, sizes, rows, results)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Compare the terminals of Bullpen with those of other systems."
    )
    parser.add_argument(
        "--quick", action="store_true", help="a run of a few seconds, to check that the benchmark works"
    )
    parser.add_argument("--rounds", type=int, help=f"number of rounds ({FULL.rounds})")
    parser.add_argument(
        "--systems", nargs="+", metavar="NAME", help="only these: " + ", ".join(s.name for s in SYSTEMS)
    )
    return parser.parse_args()


def choose_systems(names: list[str] | None) -> list[type[System]]:
    chosen = []
    for system in SYSTEMS:
        if names and system.name not in names:
            continue
        if reason := system.missing():
            progress(f"{system.name} left out: {reason}")
        else:
            chosen.append(system)
    return chosen


def measure(chosen: list[type[System]], sizes: Sizes, rounds: int) -> Results:
    results: Results = defaultdict(lambda: defaultdict(list))
    with ExitStack() as stack:
        running = [stack.enter_context(system()) for system in chosen]
        for number in range(rounds):
            progress(f"round {number + 1} of {rounds}")
            turn = number % len(running)
            order = running[turn:] + running[:turn]  # no system is always first
            for measure_system in measures(sizes):
                for system in order:
                    record(results, system.name, run_measure(system, measure_system))
            for system in order:
                with type(system)() as fresh:
                    for measure_system in measures_of_many_terminals(sizes):
                        record(results, system.name, run_measure(fresh, measure_system))
            if peers.BARE.exists():
                for kind in ("plain", "coloured"):
                    record(results, BARE, bare_throughput(kind, sizes.megabytes))
    return results


def run_measure(system: System, measure_system: Callable[[System], Figures]) -> Figures:
    try:
        figures = measure_system(system)
        settled_cpu_seconds(system.pids())  # idle before the next system is measured
    except Exception as error:
        error.add_note(f"{system.name}; its log ends:\n{system.server.log_tail()}")
        raise
    return figures


def measures(sizes: Sizes) -> list[Callable[[System], Figures]]:
    return [
        partial(throughput, kind="plain", megabytes=sizes.megabytes),
        partial(throughput, kind="coloured", megabytes=sizes.megabytes),
        partial(idle_echo, keys=sizes.keys),
        partial(echo_beside_flood, keys=sizes.keys),
        partial(echo_beside_stopped_viewer, keys=sizes.keys),
        partial(spawn, times=sizes.spawns),
    ]


def measures_of_many_terminals(sizes: Sizes) -> list[Callable[[System], Figures]]:
    """Return the measures that need a new server, since many terminals affect later measures."""
    return [
        partial(idle_memory, terminals=sizes.terminals),
        partial(many_terminals, terminals=sizes.terminals, seconds=sizes.seconds),
    ]


def record(results: Results, system: str, figures: Figures) -> None:
    for row, value in figures.items():
        results[row][system].append(value)


def print_report(chosen: list[type[System]], sizes: Sizes, rows: list[Row], results: Results) -> None:
    columns = [system.name for system in chosen]
    print(f"{platform.platform()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the end")
    versions = dict.fromkeys(system.versions() for system in chosen)
    print("; ".join([*versions, f"Python {platform.python_version()}"]))
    print(f"floods of {sizes.megabytes} MB, {sizes.keys} keys, {sizes.terminals} idle terminals\n")
    print(values_table(rows, [*columns, BARE], results))
    if OURS in columns:
        others = [name for name in [*columns, BARE] if name != OURS]
        print("\n" + ratios_table(rows, OURS, others, results))


def progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
