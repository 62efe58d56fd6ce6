"""Measure a loaded server: its start, lists, long sessions, the end of a session, and durable appends.

    .venv/bin/python bench/loaded_server.py [--quick]

The server is killed and restarted, without terminals and with 200 terminals to adopt. 100,000 sessions are
listed. A session of a million events is opened directly after a start. A session is ended whose agent
ignores SIGTERM. Events are appended durably, compared with plain sqlite3 and the same batches.
"""

import argparse
import asyncio
import os
import platform
import sqlite3
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import uvloop

from bullpen import config
from bullpen.domain.events import Draft
from bullpen.log.log import SessionLog
from bullpen.store.database import Database
from bullpen.store.events import EventStore
from harness.report import Results, Row, Target, ratios_table, table, values_table, verdicts
from harness.sample_events import START, draft
from systems.bullpen import Bullpen

OURS, BARE = "Bullpen", "sqlite3"
LONG = "a-long-session"
BATCH = 100
FIRST_CLICK = 3.0  # seconds after the start, the least that a user needs
IGNORES_SIGNALS = ["bash", "-c", "trap '' TERM HUP; while :; do sleep 0.1; done"]

ROWS = [
    Row("start", "start to ready", "ms", [Target(1200)]),
    Row("first", "first terminal after a start, to its first frame", "ms", [Target(60)]),
    Row("adopt", "additional start time with terminals to adopt", "ms", [Target(150)]),
    Row("list", "list of many sessions", "ms", [Target(10)]),
    Row("open", "opening a long session directly after a start", "ms", [Target(1000)]),
    Row("end", "end of a session whose agent ignores SIGTERM", "ms", [Target(6000)]),
]
APPENDS = Row(
    "append", f"durable appends, {BATCH} at once", "/s", [Target(0.25, at_least=True, against=BARE)]
)


@dataclass(frozen=True)
class Size:
    rounds: int
    terminals: int
    sessions: int
    events: int
    batches: int


WHOLE = Size(rounds=5, terminals=200, sessions=100_000, events=1_000_000, batches=1000)
QUICK = Size(rounds=1, terminals=10, sessions=500, events=5_000, batches=20)


def main() -> int:
    parser = argparse.ArgumentParser(description="Measure a loaded server.")
    parser.add_argument(
        "--quick", action="store_true", help="a small load, to check that the benchmark works"
    )
    options = parser.parse_args()
    size = QUICK if options.quick else WHOLE
    results: Results = defaultdict(lambda: defaultdict(list))
    measure_first_terminal(size, results)
    with Bullpen() as system:
        measure_start(system, size, results)
        measure_end(system, size, results)
    with Bullpen() as system:
        measure_lists(system, size, results)
    measure_appends(size, results)
    print(f"{platform.platform()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the end")
    print(f"{size.terminals} terminals, {size.sessions:,} sessions, {size.events:,} events\n")
    print(values_table([*ROWS, APPENDS], [OURS, BARE], results))
    print("\n" + ratios_table([APPENDS], OURS, [BARE], results))
    print(
        "\n" + table(["target", ""], [[row.title, verdicts(row, OURS, results)] for row in [*ROWS, APPENDS]])
    )
    return 0


def measure_start(system: Bullpen, size: Size, results: Results) -> None:
    alone = [system.restart() * 1000 for _ in range(size.rounds)]
    terminals = [system.open() for _ in range(size.terminals)]
    for terminal in terminals:
        terminal.read()
    full = [system.restart() * 1000 for _ in range(size.rounds)]
    results["start"][OURS] = alone
    results["adopt"][OURS] = [more - less for less, more in zip(sorted(alone), sorted(full), strict=True)]


class FreshBullpen(Bullpen):
    """A server that has no session yet."""

    def wait_until_ready(self) -> None:
        self.wait_until_healthy()


def measure_first_terminal(size: Size, results: Results) -> None:
    """Measure the first terminal of a new data directory: session, worker, socket, first frame."""
    for _ in range(size.rounds):
        with FreshBullpen() as system:
            time.sleep(FIRST_CLICK)
            began = time.perf_counter()
            system.session = system.new_session()
            system.open().read()
            results["first"][OURS].append((time.perf_counter() - began) * 1000)


def measure_end(system: Bullpen, size: Size, results: Results) -> None:
    """Measure the end of a session with shells, an ACP agent, and a terminal agent that ignores signals."""
    system.call(
        "PUT", "/api/agents/ignoring", {"name": "Ignoring", "kind": "pty", "command": IGNORES_SIGNALS}
    )
    for _ in range(min(size.rounds, 3)):
        session = system.new_session(agentId="demo")
        path = f"/api/sessions/{session}"
        system.call("POST", f"{path}/workers", {"type": "agent", "agentId": "ignoring", "role": "ignoring"})
        for number in range(3):
            system.call("POST", f"{path}/workers", {"type": "terminal", "role": f"shell {number}"})
        until_active(system, path)
        began = time.perf_counter()
        system.call("DELETE", path)
        results["end"][OURS].append((time.perf_counter() - began) * 1000)


def until_active(system: Bullpen, path: str) -> None:
    deadline = time.monotonic() + 30
    while any(each["state"] != "active" for each in system.call("GET", f"{path}/workers")["workers"]):
        if time.monotonic() > deadline:
            raise RuntimeError("the workers did not start")
        time.sleep(0.05)


def measure_lists(system: Bullpen, size: Size, results: Results) -> None:
    system.server.stop()
    asyncio.run(fill_database(system.data, size))
    for _ in range(size.rounds):
        system.restart()
        results["open"][OURS].append(timed(system, f"/api/sessions/{LONG}", "/events?newest=true&limit=200"))
    results["list"][OURS] = [timed(system, "/api/sessions", "?limit=50") for _ in range(20 * size.rounds)]


def timed(system: Bullpen, path: str, more: str) -> float:
    """Return the milliseconds that the requests of an opening page take."""
    began = time.perf_counter()
    if more.startswith("/"):
        system.call("GET", path)
    system.call("GET", path + more)
    return (time.perf_counter() - began) * 1000


async def fill_database(home: Path, size: Size) -> None:
    async with open_store(home) as store:
        for first in range(0, size.sessions, 1000):
            names = [f"one-of-many-{first + number}" for number in range(min(1000, size.sessions - first))]
            await asyncio.gather(*(SessionLog.create(store, name, [Draft(START)]) for name in names))
        log = await SessionLog.create(store, LONG, [Draft(START)])
        for first in range(0, size.events, 500):
            await log.append([draft(first + number) for number in range(500)])


@asynccontextmanager
async def open_store(home: Path) -> AsyncIterator[EventStore]:
    settings = config.load({}, {"HOME": str(home), "BULLPEN_HOME": str(home)})
    async with Database.open(settings.database_url) as opened:
        yield EventStore(opened)


def measure_appends(size: Size, results: Results) -> None:
    """Append through the log and through plain sqlite3 in turns, each to its own database."""
    for _ in range(size.rounds):
        with tempfile.TemporaryDirectory(prefix="bench-") as directory:
            # on uvloop, as in the server
            results["append"][OURS].append(uvloop.run(append_through_log(Path(directory), size.batches)))
            results["append"][BARE].append(append_through_sqlite(Path(directory), size.batches))


async def append_through_log(home: Path, batches: int) -> float:
    async with open_store(home) as store:
        log = await SessionLog.create(store, LONG, [Draft(START)])
        began = time.perf_counter()
        for first in range(batches):
            await log.append([draft(first * BATCH + number) for number in range(BATCH)])
        return batches * BATCH / (time.perf_counter() - began)


def append_through_sqlite(home: Path, batches: int) -> float:
    """Append to one table, with one row per event and one transaction per batch, as durably as Bullpen."""
    connection = sqlite3.connect(home / "bare.db", isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute(
        "CREATE TABLE events (session TEXT, seq INTEGER, data TEXT, PRIMARY KEY (session, seq))"
    )
    began = time.perf_counter()
    for first in range(batches):
        numbers = range(first * BATCH, (first + 1) * BATCH)
        rows = [(LONG, number, f'{{"text":"event number {number}, some text"}}') for number in numbers]
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany("INSERT INTO events VALUES (?, ?, ?)", rows)
        connection.execute("COMMIT")
    rate = batches * BATCH / (time.perf_counter() - began)
    connection.close()
    return rate


if __name__ == "__main__":
    sys.exit(main())
