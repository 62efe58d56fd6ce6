"""Measure the search over many messages, and how much indexing slows appends.

    .venv/bin/python bench/search.py [--quick] [--messages N]

A database is filled with a million messages and indexed. Then the newest 20 messages with a rare and with a
common word are searched repeatedly. Then events are appended as fast as the store accepts them, alternating
with and without indexing.
"""

import argparse
import asyncio
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from bullpen import config
from bullpen.agents.registry import AgentRegistry
from bullpen.domain.conversation import UserPrompt
from bullpen.domain.events import Draft, SessionStart
from bullpen.log.log import SessionLog
from bullpen.sandbox.roots import WorkspaceRoots
from bullpen.sessions.indexing import EventIndexer
from bullpen.sessions.sessions import Sessions
from bullpen.sessions.tasks import background_tasks
from bullpen.store.database import Database
from bullpen.store.events import EventStore
from bullpen.store.records import RecordStore
from bullpen.store.search import SearchFilters, search
from bullpen.workers.children import ChildHandles
from bullpen.workers.screens import Screens
from bullpen.workers.worker_services import WorkerServices

MESSAGES, QUICK = 1_000_000, 20_000
SESSIONS = 20
CHUNK = 500
APPENDING_SECONDS, QUICK_SECONDS = (
    10.0,
    1.0,
)  # long enough to include the pauses of the indexer between batches
ROUNDS = 4
MAX_MS = 20.0
MIN_RATIO = 0.9
VOCABULARY = [f"word{number}" for number in range(5000)]
START = SessionStart(session_type="quick", location_path="/srv/x", title="bench")


def main() -> int:
    parser = argparse.ArgumentParser(description="Measure the search over many messages.")
    parser.add_argument(
        "--quick", action="store_true", help="few messages, to check that the benchmark works"
    )
    parser.add_argument("--messages", type=int, help=f"number of messages (default {MESSAGES:,})")
    options = parser.parse_args()
    messages = options.messages or (QUICK if options.quick else MESSAGES)
    seconds = QUICK_SECONDS if options.quick else APPENDING_SECONDS
    with tempfile.TemporaryDirectory() as directory:
        return asyncio.run(measure(Path(directory), messages, seconds))


async def measure(directory: Path, messages: int, seconds: float) -> int:
    settings = config.load({}, {"HOME": str(directory), "BULLPEN_HOME": str(directory)})
    async with (
        Database.open(settings.database_url) as database,
        ChildHandles.open(directory) as children,
        Screens.open(directory / "screens") as screens,
        background_tasks() as tasks,
    ):
        store = EventStore(database)
        roots = WorkspaceRoots(settings, RecordStore(database), {})
        sessions = Sessions(
            store, WorkerServices(settings, store, children, screens, AgentRegistry(directory), roots), tasks
        )
        sessions.workers_resumed.set()
        began = time.monotonic()
        logs = [await fill(store, number, messages // SESSIONS) for number in range(SESSIONS)]
        filled = time.monotonic()
        await index(sessions)
        indexed = time.monotonic()
        print(f"{messages:,} messages stored in {filled - began:.0f} s, indexed in {indexed - filled:.0f} s")
        found = [await measure_search(database, word) for word in ("needle", "common", "common word7")]
        ratio = await measure_appends(sessions, logs, seconds)
    return 0 if max(found) < MAX_MS and ratio >= MIN_RATIO else 1


async def fill(store: EventStore, number: int, count: int) -> SessionLog:
    log = await SessionLog.create(store, f"bench-{number}", [Draft(START)])
    texts = generate_texts(number, count)
    for _ in range(0, count, CHUNK):
        await log.append([Draft(UserPrompt(text=text, prompt_id="x")) for text in next_chunk(texts)])
    return log


def next_chunk(texts: Iterator[str]) -> list[str]:
    return list(islice(texts, CHUNK))


def generate_texts(seed: int, count: int) -> Iterator[str]:
    """Yield messages of twelve words; every message has one common word, every second log one rare word."""
    rng = random.Random(seed)
    rare = {count // 2} if seed % 2 else set()
    for number in range(count):
        words = rng.choices(VOCABULARY, k=10)
        yield f"{' '.join(words)} common {'needle' if number in rare else 'hay'}"


async def index(sessions: Sessions) -> None:
    """Index all events."""
    indexing = EventIndexer(sessions)
    await indexing.queue_unindexed_sessions()
    await indexing.index_queued()


async def measure_search(database: Database, q: str) -> float:
    times = []
    for _ in range(50):
        began = time.perf_counter()
        found = await database.read(lambda c: search(c, q, SearchFilters(), 20))
        times.append((time.perf_counter() - began) * 1000)
    median, worst = statistics.median(times), max(times)
    if not found:
        raise SystemExit(f"{q!r} is in the messages and was not found")
    print(f"newest {len(found):2} for {q!r:16} median {median:6.2f} ms, worst {worst:6.2f} ms")
    return median


async def measure_appends(sessions: Sessions, logs: list[SessionLog], seconds: float) -> float:
    """Return the ratio of the append rate with indexing to that without, in rounds of alternating order."""
    for log in logs:
        sessions.add(log)
    without, with_it = [], []
    for number in range(ROUNDS):
        for indexed in (False, True) if number % 2 else (True, False):
            if indexed:
                indexing = asyncio.ensure_future(EventIndexer(sessions).run())
                with_it.append(await rate(logs, seconds))
                indexing.cancel()
            else:
                without.append(await rate(logs, seconds))
    ratio = sum(with_it) / sum(without)
    rates = [f"{statistics.mean(each):,.0f}/s" for each in (without, with_it)]
    print(f"appends: {rates[0]} without, {rates[1]} with indexing")
    print(f"ratio {ratio:.2f} (target {MIN_RATIO})")
    return ratio


async def rate(logs: list[SessionLog], seconds: float) -> float:
    end = time.monotonic() + seconds
    counts = await asyncio.gather(*(append_until(log, end) for log in logs))
    return sum(counts) / seconds


async def append_until(log: SessionLog, end: float) -> int:
    count = 0
    while time.monotonic() < end:
        await log.append([Draft(UserPrompt(text=f"a common thing, number {count}", prompt_id="x"))])
        count += 1
    return count


if __name__ == "__main__":
    sys.exit(main())
