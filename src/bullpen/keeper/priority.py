"""Choose the scheduling policy of the keeper: batch while it reads floods, normal at all other times.

A flood costs less to read under SCHED_BATCH: the keeper does not interrupt the program that prints at every
page. The program fills the terminal's buffer, and then the keeper reads all of it.
"""

from __future__ import annotations

import os

_UNAVAILABLE = -1  # Linux has both policies
_NORMAL: int = getattr(os, "SCHED_OTHER", _UNAVAILABLE)
_BATCH: int = getattr(os, "SCHED_BATCH", _UNAVAILABLE)
_RESET_ON_FORK: int = getattr(os, "SCHED_RESET_ON_FORK", 0)


class SchedulingPriority:
    """The scheduling policy of this process, left alone if it was not the normal one at the start.

    Processes that are started while it is in force inherit it.
    """

    def __init__(self) -> None:
        self.is_batch = False
        policy = os.sched_getscheduler(0)
        self._flag = policy & _RESET_ON_FORK  # of time_slice.py; only root can take it away
        self._changeable = _BATCH != _UNAVAILABLE and policy == _NORMAL | self._flag

    def change(self, batch: bool) -> None:
        """Use the batch policy, or the normal one. Do nothing where the kernel does not allow a change."""
        if batch == self.is_batch or not self._changeable:
            return
        try:
            os.sched_setscheduler(0, (_BATCH if batch else _NORMAL) | self._flag, os.sched_param(0))
        except OSError:  # not allowed here
            self._changeable = False
            return
        self.is_batch = batch
