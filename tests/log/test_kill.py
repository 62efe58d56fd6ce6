"""`kill -9` at random moments: acknowledged appends are stored, and each append completely or not at all."""

import itertools
import multiprocessing
import random
import signal
from contextlib import suppress

from bullpen.domain.snapshot import Snapshot, fold_all
from bullpen.store.database import Database
from bullpen.store.events import EventStore
from support.appender import SESSIONS, run
from support.sample_events import error_texts

PROCESSES = multiprocessing.get_context("fork")  # so that no process imports anything


def run_and_kill(url: str, after_appends: int) -> dict[str, int]:
    """Kill the appender after some appends. Return the last acknowledged append of each session."""
    acknowledged: dict[str, int] = {}
    reports, its = PROCESSES.Pipe(duplex=False)
    child = PROCESSES.Process(target=run, args=(url, its))
    child.start()
    its.close()
    with reports, suppress(EOFError):
        for number in itertools.count():
            name, n = reports.recv()
            acknowledged[name] = n
            if number == after_appends:
                child.kill()
    child.join()
    assert child.exitcode == -signal.SIGKILL
    return acknowledged


async def count_appends(store: EventStore, name: str) -> int:
    """Return the number of appends of a session, after a check that each is stored completely and once."""
    events = [event for event, _ in await store.events(name, limit=1_000_000)]
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    count = len(events) - 2
    assert error_texts(events) == [str(n) for n in range(1, count + 1)]
    assert await store.undelivered_lines(f"w-{name}", 1) == [
        (n, b"%d %d" % (n, n)) for n in range(1, count + 1)
    ]
    assert await store.consumed_offset(f"w-{name}", 1) == count
    assert await store.load(name) == fold_all(Snapshot(id=name), events)
    return count


async def test_every_acknowledged_append_is_stored_after_a_kill(url: str, faults: int) -> None:
    chance = random.Random(faults)
    checked = 0
    for _ in range(faults):
        acknowledged = run_and_kill(url, chance.randint(0, 120))
        async with Database.open(url) as database:
            store = EventStore(database)
            for name in SESSIONS:
                if name in acknowledged:
                    # One append per session may have been stored and its acknowledgement lost.
                    assert acknowledged[name] <= await count_appends(store, name) <= acknowledged[name] + 1
                    checked += 1
    assert checked, "no append was acknowledged before a kill, so nothing was tested"
