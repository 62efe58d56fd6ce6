"""The current time; all other modules read clocks through this one, so that tests can replace it."""

import time


def now_ms() -> int:
    """Return the time in milliseconds since the epoch, for timestamps; never use it for durations."""
    return time.time_ns() // 1_000_000


def now_ns() -> int:
    """Return the time in nanoseconds since the epoch, the unit of recordings."""
    return time.time_ns()


def monotonic() -> float:
    """Return a time in seconds that never goes back, for durations and deadlines."""
    return time.monotonic()
