"""Thread pools whose threads are started in advance."""

import os
from concurrent.futures import ThreadPoolExecutor, wait
from threading import Barrier


def started_pool(threads: int, name: str) -> ThreadPoolExecutor:
    """Return a pool with all its threads running, so that no later call fails for want of a thread."""
    pool = ThreadPoolExecutor(threads, thread_name_prefix=name)
    together = Barrier(threads)  # a thread that is free would take the next call, and no other be started
    wait([pool.submit(together.wait) for _ in range(threads)])
    return pool


def default_pool() -> ThreadPoolExecutor:
    """Return a pool for an event loop, of the size that asyncio would choose."""
    return started_pool(min(32, (os.cpu_count() or 1) + 4), "bullpen")
