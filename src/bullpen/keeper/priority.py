"""How soon the kernel lets the keeper run when there is something to read: at once, or when others pause.

A flood costs less to read when the program that prints it is not interrupted for every page: it goes on
until the terminal is full, and we take it all.
"""

from __future__ import annotations

import os

_NONE = -1  # Linux has them
_USUAL: int = getattr(os, "SCHED_OTHER", _NONE)
_PATIENT: int = getattr(os, "SCHED_BATCH", _NONE)


class SchedulingPriority:
    """Ours to change only if nobody else has chosen one. Children inherit it."""

    def __init__(self) -> None:
        self.patient = False
        self._changeable = _PATIENT != _NONE and os.sched_getscheduler(0) == _USUAL

    def change(self, patient: bool) -> None:
        if patient == self.patient or not self._changeable:
            return
        try:
            os.sched_setscheduler(0, _PATIENT if patient else _USUAL, os.sched_param(0))
        except OSError:  # not allowed here
            self._changeable = False
            return
        self.patient = patient
