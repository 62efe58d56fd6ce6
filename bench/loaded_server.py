"""Measure a loaded server: its start, lists, long sessions, the end of a session, and durable appends.

    .venv/bin/python bench/loaded_server.py [--quick] [--appends] [--postgresql URL]

The server is killed and restarted, without terminals and with 200 terminals to adopt. 100,000 sessions are
listed. A session of a million events is open_store directly after a start. A session is ended whose agent
ignores SIGTERM. Events are appended durably, compared with plain sqlite3 and the same batches, and with the
same store without its fence. `--postgresql` also measures the fence on an empty PostgreSQL database.
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
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from unittest.mock import patch
from uuid import uuid4

import uvloop
from sqlalchemy import Connection, text

from bullpen import config
from bullpen.domain.conversation import UserPrompt
from bullpen.domain.events import Draft, SessionStart
from bullpen.log.log import SessionLog
from bullpen.store import database
from bullpen.store.database import Database
from bullpen.store.events import EventStore
from bullpen.store.fence import Fence
from harness.report import Results, Row, Target, ratios_table, table, values_table, verdicts
from systems.bullpen import Bullpen

OURS, BARE, UNFENCED = "Bullpen", "sqlite3", "no fence"
LONG = "a-long-session"
BATCH = 100
RECEIPT = text("SELECT pg_current_xact_id()::text")
FIRST_CLICK = 3.0  # seconds after the start, the least that a user needs
START = SessionStart(session_type="quick", location_path="/srv/x", title="one of many")
IGNORES_SIGNALS = ["bash", "-c", "trap '' TERM HUP; while :; do sleep 0.1; done"]

ROWS = [
    Row("start", "start to ready", "ms", [Target(1200)]),
    Row("first", "first terminal after a start, to its first frame", "ms", [Target(60)]),
    Row("adopt", "additional start time with terminals to adopt", "ms", [Target(150)]),
    Row("list", "list of many sessions", "ms", [Target(10)]),
    Row("open", "opening a long session directly after a start", "ms", [Target(1000)]),
    Row("end", "end of a session whose agent ignores SIGTERM", "ms", [Target(6000)]),
]
APPENDS = [
    Row("append", f"durable appends, {BATCH} at once", "/s", [Target(0.25, at_least=True, against=BARE)]),
    Row(
        "fence",
        "durable appends, alternating with no fence",
        "/s",
        [Target(0.95, at_least=True, against=UNFENCED)],
    ),
    Row(
        "postgresql",
        "durable appends on PostgreSQL, alternating with no fence",
        "/s",
        [Target(0.95, at_least=True, against=UNFENCED)],
    ),
]


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
    parser.add_argument("--appends", action="store_true", help="only the durable appends")
    parser.add_argument(
        "--postgresql", metavar="URL", help="an empty database to measure the fence on as well"
    )
    options = parser.parse_args()
    size = QUICK if options.quick else WHOLE
    results: Results = defaultdict(lambda: defaultdict(list))
    if not options.appends:
        measure_first_terminal(size, results)
        with Bullpen() as system:
            measure_start(system, size, results)
            measure_end(system, size, results)
        with Bullpen() as system:
            measure_lists(system, size, results)
    measure_appends(size, results)
    measure_fence(size, results, options.postgresql)
    rows = [row for row in [*ROWS, *APPENDS] if row.key in results]
    print(f"{platform.platform()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the end")
    print(f"{size.terminals} terminals, {size.sessions:,} sessions, {size.events:,} events\n")
    print(values_table(rows, [OURS, BARE, UNFENCED], results))
    print("\n" + ratios_table([row for row in APPENDS if row in rows], OURS, [BARE, UNFENCED], results))
    print("\n" + table(["target", ""], [[row.title, verdicts(row, OURS, results)] for row in rows]))
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


def draft(number: int) -> Draft:
    return Draft(UserPrompt(text=f"event number {number}, some text", prompt_id=f"p{number}"))


def measure_appends(size: Size, results: Results) -> None:
    """Append through the log and through plain sqlite3 in turns, each to its own database."""
    for _ in range(size.rounds):
        with tempfile.TemporaryDirectory(prefix="bench-") as directory:
            # on uvloop, as in the server
            results["append"][OURS].append(uvloop.run(append_through_log(Path(directory), size.batches)))
            results["append"][BARE].append(append_through_sqlite(Path(directory), size.batches))


def measure_fence(size: Size, results: Results, postgresql: str | None) -> None:
    """Measure appends to two databases in turns, one with the fence and one without."""
    for _ in range(size.rounds):
        with tempfile.TemporaryDirectory(prefix="bench-") as directory:
            urls = [f"sqlite:///{directory}/{name}.db" for name in ("fenced", "unfenced")]
            uvloop.run(in_turns(urls, size.batches, results["fence"]))
        if postgresql:
            uvloop.run(in_turns([postgresql, postgresql], size.batches // 5, results["postgresql"]))


async def in_turns(urls: Sequence[str], batches: int, rates: dict[str, list[float]]) -> None:
    """Alternate after each append, so that other load on the machine affects both alike."""
    seconds: dict[str, list[float]] = {OURS: [], UNFENCED: []}
    async with AsyncExitStack() as stack:
        logs = {}
        for column, fence, url in zip(seconds, (Fence, Unfenced), urls, strict=True):
            with patch.object(database, "Fence", fence):
                opened = await stack.enter_async_context(Database.open(url))
            logs[column] = await SessionLog.create(EventStore(opened), str(uuid4()), [Draft(START)])
        for first in range(batches):
            for column in (OURS, UNFENCED) if first % 2 else (UNFENCED, OURS):
                drafts = [draft(first * BATCH + number) for number in range(BATCH)]
                began = time.perf_counter()
                await logs[column].append(drafts)
                seconds[column].append(time.perf_counter() - began)
    for column, each in seconds.items():
        rates[column].append(BATCH / median(each))


class Unfenced(Fence):
    """A fence that does nothing, except for the query that PostgreSQL got before there was a fence."""

    def advance(self, connection: Connection, step: int) -> None:
        if connection.dialect.name == "postgresql":
            connection.execute(RECEIPT).scalar_one()

    def confirm(self) -> None:
        pass


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
