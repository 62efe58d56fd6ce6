"""The only place that asks what time it is."""

import time


def now_ms() -> int:
    """Milliseconds since the epoch: for timestamps a person reads, never for durations."""
    return time.time_ns() // 1_000_000


def now_ns() -> int:
    """The same in nanoseconds, as recordings are dated."""
    return time.time_ns()


def monotonic() -> float:
    """Seconds that never go back: for durations and deadlines."""
    return time.monotonic()
