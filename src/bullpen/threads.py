"""Thread pools whose threads are started in advance, so that no later call fails for lack of a thread."""

import os
from concurrent.futures import ThreadPoolExecutor, wait
from threading import Barrier


def started_pool(threads: int, name: str) -> ThreadPoolExecutor:
    """Return a pool with all its threads running, so that no later call fails because no thread can start."""
    pool = ThreadPoolExecutor(threads, thread_name_prefix=name)
    barrier = Barrier(threads)  # keeps each thread busy, so that the next call starts another one
    wait([pool.submit(barrier.wait) for _ in range(threads)])
    return pool


def default_pool() -> ThreadPoolExecutor:
    """Return a pool for an event loop, of the size that asyncio would choose."""
    return started_pool(min(32, (os.cpu_count() or 1) + 4), "bullpen")
