"""Compute the delay before the next retry: 0.05 seconds, then 1, 2, 4 … at most 30 seconds."""

import random
from collections.abc import Callable

from ..intervals import intervals

FIRST_SECONDS = 0.05
MAX_SECONDS = 30.0


class Backoff:
    """The delays of one series of failures, with jitter so that many clients do not retry at once."""

    def __init__(self, jitter: Callable[[], float] = random.random) -> None:
        self._jitter = jitter
        self._failures = 0

    def next_delay(self) -> float:
        """Count a failure and return the seconds to wait before the next attempt."""
        doubled = intervals().retry * 2.0 ** (self._failures - 1)
        delay = min(MAX_SECONDS, doubled) if self._failures else FIRST_SECONDS
        self._failures += 1
        return delay * (0.75 + 0.25 * self._jitter())

    def reset(self) -> None:
        """Start a new series after a success."""
        self._failures = 0
