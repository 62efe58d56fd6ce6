"""A full house: how fast it starts, lists, opens and ends, and how fast it remembers.

    .venv/bin/python bench/house.py [--quick] [--appends] [--postgresql URL]

The server is killed and started again, with nothing and with 200 terminals to adopt; a hundred thousand
sessions are listed; one of a million events is opened right after a start; a session with an agent that will
not end is ended; and events are appended durably, beside bare sqlite3 with the same batches, and beside the
same store without its fence. `--postgresql` measures the fence on that empty database as well.
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
FIRST_CLICK = 3.0  # seconds after the start, which a person at least takes
START = SessionStart(session_type="quick", location_path="/srv/x", title="one of many")
DEAF = ["bash", "-c", "trap '' TERM HUP; while :; do sleep 0.1; done"]

ROWS = [
    Row("start", "start to ready", "ms", [Target(1200)]),
    Row("first", "the first terminal after a start, to its first frame", "ms", [Target(60)]),
    Row("adopt", "more with terminals to adopt", "ms", [Target(150)]),
    Row("list", "list of many sessions", "ms", [Target(10)]),
    Row("open", "a long session right after a start", "ms", [Target(1000)]),
    Row("end", "end of a session with one that will not", "ms", [Target(6000)]),
]
APPENDS = [
    Row("append", f"durable appends, {BATCH} at once", "/s", [Target(0.25, at_least=True, against=BARE)]),
    Row(
        "fence",
        "the same, in turns without the fence",
        "/s",
        [Target(0.95, at_least=True, against=UNFENCED)],
    ),
    Row("postgresql", "the same on PostgreSQL", "/s", [Target(0.95, at_least=True, against=UNFENCED)]),
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
    parser = argparse.ArgumentParser(description="How a full house starts, lists, opens and ends.")
    parser.add_argument("--quick", action="store_true", help="a small house, to see whether it works")
    parser.add_argument("--appends", action="store_true", help="only the durable appends")
    parser.add_argument(
        "--postgresql", metavar="URL", help="an empty database to measure the fence on as well"
    )
    chosen = parser.parse_args()
    size = QUICK if chosen.quick else WHOLE
    results: Results = defaultdict(lambda: defaultdict(list))
    if not chosen.appends:
        beginning(size, results)
        with Bullpen() as system:
            starting(system, size, results)
            ending(system, size, results)
        with Bullpen() as system:
            listing(system, size, results)
    appending(size, results)
    fencing(size, results, chosen.postgresql)
    rows = [row for row in [*ROWS, *APPENDS] if row.key in results]
    print(f"{platform.platform()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the end")
    print(f"{size.terminals} terminals, {size.sessions:,} sessions, {size.events:,} events\n")
    print(values_table(rows, [OURS, BARE, UNFENCED], results))
    print("\n" + ratios_table([row for row in APPENDS if row in rows], OURS, [BARE, UNFENCED], results))
    print("\n" + table(["target", ""], [[row.title, verdicts(row, OURS, results)] for row in rows]))
    return 0


def starting(system: Bullpen, size: Size, results: Results) -> None:
    alone = [system.restart() * 1000 for _ in range(size.rounds)]
    terminals = [system.open() for _ in range(size.terminals)]
    for terminal in terminals:
        terminal.read()
    full = [system.restart() * 1000 for _ in range(size.rounds)]
    results["start"][OURS] = alone
    results["adopt"][OURS] = [more - less for less, more in zip(sorted(alone), sorted(full), strict=True)]


class Fresh(Bullpen):
    """A server for which nothing was done yet: without even a session."""

    def wait_until_ready(self) -> None:
        self.wait_until_healthy()


def beginning(size: Size, results: Results) -> None:
    """A person opens the first terminal of a new data directory: session, worker, socket, first frame."""
    for _ in range(size.rounds):
        with Fresh() as system:
            time.sleep(FIRST_CLICK)
            began = time.perf_counter()
            system.session = system.new_session()
            system.open().read()
            results["first"][OURS].append((time.perf_counter() - began) * 1000)


def ending(system: Bullpen, size: Size, results: Results) -> None:
    """Shells that go when asked, agents that talk, and one on a terminal that hears nothing."""
    system.call("PUT", "/api/agents/deaf", {"name": "Deaf", "kind": "pty", "command": DEAF})
    for _ in range(min(size.rounds, 3)):
        session = system.new_session(agentId="demo")
        path = f"/api/sessions/{session}"
        system.call("POST", f"{path}/workers", {"type": "agent", "agentId": "deaf", "role": "deaf"})
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
            raise RuntimeError("its workers do not come up")
        time.sleep(0.05)


def listing(system: Bullpen, size: Size, results: Results) -> None:
    system.server.stop()
    asyncio.run(furnish(system.data, size))
    for _ in range(size.rounds):
        system.restart()
        results["open"][OURS].append(timed(system, f"/api/sessions/{LONG}", "/events?newest=true&limit=200"))
    results["list"][OURS] = [timed(system, "/api/sessions", "?limit=50") for _ in range(20 * size.rounds)]


def timed(system: Bullpen, path: str, then: str) -> float:
    """What a page asks for when it opens, until the last answer is there."""
    began = time.perf_counter()
    if then.startswith("/"):
        system.call("GET", path)
    system.call("GET", path + then)
    return (time.perf_counter() - began) * 1000


async def furnish(home: Path, size: Size) -> None:
    async with opened(home) as store:
        for first in range(0, size.sessions, 1000):
            names = [f"one-of-many-{first + number}" for number in range(min(1000, size.sessions - first))]
            await asyncio.gather(*(SessionLog.create(store, name, [Draft(START)]) for name in names))
        log = await SessionLog.create(store, LONG, [Draft(START)])
        for first in range(0, size.events, 500):
            await log.append([draft(first + number) for number in range(500)])


@asynccontextmanager
async def opened(home: Path) -> AsyncIterator[EventStore]:
    settings = config.load({}, {"HOME": str(home), "BULLPEN_HOME": str(home)})
    async with Database.open(settings.database_url) as opened:
        yield EventStore(opened)


def draft(number: int) -> Draft:
    return Draft(UserPrompt(text=f"thing number {number}, said once", prompt_id=f"p{number}"))


def appending(size: Size, results: Results) -> None:
    """In turns, each on a database of its own."""
    for _ in range(size.rounds):
        with tempfile.TemporaryDirectory(prefix="bench-") as directory:
            # On the loop the server runs on.
            results["append"][OURS].append(uvloop.run(through_the_log(Path(directory), size.batches)))
            results["append"][BARE].append(through_bare_sqlite(Path(directory), size.batches))


def fencing(size: Size, results: Results, postgresql: str | None) -> None:
    """Append to two databases in turns, one with the fence and one without."""
    for _ in range(size.rounds):
        with tempfile.TemporaryDirectory(prefix="bench-") as directory:
            urls = [f"sqlite:///{directory}/{name}.db" for name in ("fenced", "unfenced")]
            uvloop.run(in_turns(urls, size.batches, results["fence"]))
        if postgresql:
            uvloop.run(in_turns([postgresql, postgresql], size.batches // 5, results["postgresql"]))


async def in_turns(urls: Sequence[str], batches: int, rates: dict[str, list[float]]) -> None:
    """Append by append, so that whatever else the machine does slows both down alike."""
    seconds: dict[str, list[float]] = {OURS: [], UNFENCED: []}
    async with AsyncExitStack() as stack:
        logs = {}
        for who, fence, url in zip(seconds, (Fence, Unfenced), urls, strict=True):
            with patch.object(database, "Fence", fence):
                opened = await stack.enter_async_context(Database.open(url))
            logs[who] = await SessionLog.create(EventStore(opened), str(uuid4()), [Draft(START)])
        for first in range(batches):
            for who in (OURS, UNFENCED) if first % 2 else (UNFENCED, OURS):
                drafts = [draft(first * BATCH + number) for number in range(BATCH)]
                began = time.perf_counter()
                await logs[who].append(drafts)
                seconds[who].append(time.perf_counter() - began)
    for who, each in seconds.items():
        rates[who].append(BATCH / median(each))


class Unfenced(Fence):
    """What a transaction did before there was a fence: PostgreSQL was asked for a receipt."""

    def advance(self, connection: Connection, step: int) -> None:
        if connection.dialect.name == "postgresql":
            connection.execute(RECEIPT).scalar_one()

    def confirm(self) -> None:
        pass


async def through_the_log(home: Path, batches: int) -> float:
    async with opened(home) as store:
        log = await SessionLog.create(store, LONG, [Draft(START)])
        began = time.perf_counter()
        for first in range(batches):
            await log.append([draft(first * BATCH + number) for number in range(BATCH)])
        return batches * BATCH / (time.perf_counter() - began)


def through_bare_sqlite(home: Path, batches: int) -> float:
    """One table, one row an event, one transaction a batch, as safe on the disk as ours."""
    connection = sqlite3.connect(home / "bare.db", isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute(
        "CREATE TABLE events (session TEXT, seq INTEGER, data TEXT, PRIMARY KEY (session, seq))"
    )
    began = time.perf_counter()
    for first in range(batches):
        numbers = range(first * BATCH, (first + 1) * BATCH)
        rows = [(LONG, number, f'{{"text":"thing number {number}, said once"}}') for number in numbers]
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany("INSERT INTO events VALUES (?, ?, ?)", rows)
        connection.execute("COMMIT")
    rate = batches * BATCH / (time.perf_counter() - began)
    connection.close()
    return rate


if __name__ == "__main__":
    sys.exit(main())
