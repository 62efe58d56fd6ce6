"""Shift the wall clock of a Python process by the number of seconds in the file that SET_CLOCK names.

Python runs this module at its start if the directory is in PYTHONPATH. The monotonic clock is not shifted, as
when a user or a time server sets the clock.
"""

import os
import time

_file = os.environ.get("SET_CLOCK")
_time, _time_ns = time.time, time.time_ns


def _shift_ns() -> int:
    try:
        with open(_file or os.devnull) as file:
            return int(file.read() or 0) * 10**9
    except FileNotFoundError:
        return 0


if _file:
    time.time = lambda: _time() + _shift_ns() / 1e9
    time.time_ns = lambda: _time_ns() + _shift_ns()
