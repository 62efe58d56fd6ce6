"""Measure authenticated requests beside clients that hold connections or send endless headers.

    .venv/bin/python bench/unauthenticated.py [--quick]

In each round the same health requests are measured without and with these clients. The memory of the server
is compared with its value before the first of these clients connected.
"""

import argparse
import os
import platform
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from statistics import median

from harness.processes import memory_bytes
from harness.report import Results, Row, Target, ratios_table, table, values_table, verdicts
from systems.bullpen import Bullpen

CLIENTS = Path(__file__).parent / "children" / "hostile_clients.py"
BESIDE, ALONE = "beside them", "alone"
MEGABYTE = 1_000_000

ROWS = [
    Row("kept", "health on a kept connection, p50", "ms", [Target(1.2, against=ALONE)]),
    Row("new", "health on a new connection, p50", "ms", [Target(1.2, against=ALONE)]),
]
MEMORY = Row("memory", "server memory grows by", "MB", [Target(50)])


@dataclass(frozen=True)
class Size:
    rounds: int
    requests: int
    endless: int
    idle: int


WHOLE = Size(rounds=15, requests=200, endless=3, idle=2000)
QUICK = Size(rounds=1, requests=20, endless=3, idle=50)


def main() -> int:
    parser = argparse.ArgumentParser(description="Measure authenticated requests beside hostile clients.")
    parser.add_argument(
        "--quick", action="store_true", help="few clients and requests, to check that the benchmark works"
    )
    size = QUICK if parser.parse_args().quick else WHOLE
    results: Results = defaultdict(lambda: defaultdict(list))
    with Bullpen() as system:
        measure(system, ALONE, size.requests, defaultdict(lambda: defaultdict(list)))  # warms the server up
        before = memory_bytes([system.server.pid])[0]
        for _ in range(size.rounds):
            measure(system, ALONE, size.requests, results)
            with hostile_clients(system, size):
                measure(system, BESIDE, size.requests, results)
                grown = memory_bytes([system.server.pid])[0] - before
                results["memory"][BESIDE].append(max(0, grown) / MEGABYTE)
    print(f"{platform.platform()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the end")
    print(f"{size.endless} clients with endless headers, {size.idle:,} idle connections\n")
    print(values_table([*ROWS, MEMORY], [BESIDE, ALONE], results))
    print("\n" + ratios_table(ROWS, BESIDE, [ALONE], results))
    print("\n" + table(["target", ""], [[MEMORY.title, verdicts(MEMORY, BESIDE, results)]]))
    return 0


@contextmanager
def hostile_clients(system: Bullpen, size: Size) -> Iterator[None]:
    """Keep the clients connected while the block runs, in a process of their own."""
    command = [sys.executable, str(CLIENTS), str(system.port), str(size.endless), str(size.idle)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield
        finally:
            process.kill()


def measure(system: Bullpen, column: str, requests: int, results: Results) -> None:
    kept = HTTPConnection("127.0.0.1", system.port)
    samples = [timed(kept, system.headers) for _ in range(requests)]
    kept.close()
    results["kept"][column].append(median(samples))
    samples = []
    for _ in range(requests):
        fresh = HTTPConnection("127.0.0.1", system.port)
        samples.append(timed(fresh, system.headers))
        fresh.close()
    results["new"][column].append(median(samples))


def timed(connection: HTTPConnection, headers: dict[str, str]) -> float:
    """Return the milliseconds of an authenticated health request."""
    began = time.perf_counter()
    connection.request("GET", "/api/health", headers=headers)
    answer = connection.getresponse()
    answer.read()
    if answer.status != 200:
        raise RuntimeError(f"health answered {answer.status}")
    return (time.perf_counter() - began) * 1000


if __name__ == "__main__":
    sys.exit(main())
