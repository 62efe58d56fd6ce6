"""Measure what the fence costs: durable appends to two databases in turns, one with it and one without.

    .venv/bin/python bench/fence.py [--quick]

One pair of databases is SQLite. The other is in a new PostgreSQL cluster, which does not wait for the disk.
"""

import argparse
import os
import platform
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from statistics import median
from unittest.mock import patch
from uuid import uuid4

import uvloop
from sqlalchemy import Connection, text

from bullpen.domain.events import Draft
from bullpen.log.log import SessionLog
from bullpen.store import database
from bullpen.store.database import Database
from bullpen.store.events import EventStore
from bullpen.store.fence import Fence
from harness.report import Results, Row, Target, ratios_table, values_table
from harness.sample_events import START, draft

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from support.databases import Cluster

OURS, UNFENCED = "Bullpen", "no fence"
BATCH = 100
ROUNDS, BATCHES = 5, 1000
QUICK_ROUNDS, QUICK_BATCHES = 1, 20
RECEIPT = text("SELECT pg_current_xact_id()::text")
TARGETS = [Target(0.95, at_least=True, against=UNFENCED)]
ROWS = [
    Row("sqlite", f"durable appends to SQLite, {BATCH} at once", "/s", TARGETS),
    Row("postgresql", f"appends to PostgreSQL, {BATCH} at once", "/s", TARGETS),
]


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure what the fence costs.")
    parser.add_argument(
        "--quick", action="store_true", help="a few appends, to check that the benchmark works"
    )
    quick = parser.parse_args().quick
    rounds, batches = (QUICK_ROUNDS, QUICK_BATCHES) if quick else (ROUNDS, BATCHES)
    results: Results = defaultdict(lambda: defaultdict(list))
    with running_cluster() as cluster:
        for _ in range(rounds):
            with tempfile.TemporaryDirectory(prefix="bench-") as directory:
                urls = [f"sqlite:///{directory}/{name}.db" for name in ("fenced", "unfenced")]
                uvloop.run(append_in_turns(urls, batches, results["sqlite"]))
            urls = [cluster.new_database() for _ in range(2)]
            uvloop.run(append_in_turns(urls, batches // 5, results["postgresql"]))
    print(f"{platform.platform()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the end")
    print(f"the rate of the median append, {rounds} rounds\n")
    print(values_table(ROWS, [OURS, UNFENCED], results))
    print("\n" + ratios_table(ROWS, OURS, [UNFENCED], results))


@contextmanager
def running_cluster() -> Iterator[Cluster]:
    cluster = Cluster()
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.remove()


async def append_in_turns(urls: Sequence[str], batches: int, rates: dict[str, list[float]]) -> None:
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


if __name__ == "__main__":
    main()
