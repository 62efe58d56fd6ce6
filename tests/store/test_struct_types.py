"""Threads decode events of one type for the first time at the same moment."""

import subprocess
import sys
from pathlib import Path

PROGRAM = """
import asyncio, sys, threading
import msgspec
from bullpen.domain import conversation, grants, queue, snapshot  # they define facts
from bullpen.domain.events import FACTS
from bullpen.store.database import Database

def decode(fact, barrier):
    barrier.wait()
    try:
        fact.from_data(dict.fromkeys(fact.__struct_encode_fields__, {}))
    except msgspec.ValidationError:
        pass

async def main():
    async with Database.open(sys.argv[1]):
        sys.setswitchinterval(1e-6)
        for fact in FACTS.values():
            barrier = threading.Barrier(8)
            threads = [threading.Thread(target=decode, args=(fact, barrier)) for _ in range(8)]
            for thread in threads: thread.start()
            for thread in threads: thread.join()
        print(len(FACTS))

asyncio.run(main())
"""


def test_threads_decode_each_type_of_event_for_the_first_time_at_once(tmp_path: Path) -> None:
    for number in range(3):
        url = f"sqlite:///{tmp_path / f'{number}.db'}"
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, url], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        assert int(done.stdout) > 20
