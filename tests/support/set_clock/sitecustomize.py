"""Sets the clock of a Python process: whatever asks for the time gets it shifted by the seconds in a file.

Python runs this at its start when the directory is on PYTHONPATH. Only the wall clock is shifted, as when a
person or a time server sets it: the monotonic clock never is.
"""

import os
import time

_file = os.environ.get("SET_CLOCK")
_time, _time_ns = time.time, time.time_ns


def _shift() -> int:
    """In nanoseconds."""
    try:
        with open(_file or os.devnull) as file:
            return int(file.read() or 0) * 10**9
    except FileNotFoundError:
        return 0


if _file:
    time.time = lambda: _time() + _shift() / 1e9
    time.time_ns = lambda: _time_ns() + _shift()
