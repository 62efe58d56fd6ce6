"""How long to wait before the next try: almost nothing, then 1, 2, 4 … at most 30 seconds."""

import random
from collections.abc import Callable

from ..intervals import intervals

FIRST = 0.05
LONGEST = 30.0


class Backoff:
    """The delays of one series of failures, shortened by chance so that many clients do not knock at once."""

    def __init__(self, chance: Callable[[], float] = random.random) -> None:
        self._chance = chance
        self._failures = 0

    def next(self) -> float:
        doubled = intervals().retry * 2.0 ** (self._failures - 1)
        delay = min(LONGEST, doubled) if self._failures else FIRST
        self._failures += 1
        return delay * (0.75 + 0.25 * self._chance())

    def reset(self) -> None:
        """It works again: the next failure is a first one."""
        self._failures = 0
