"""Ask the kernel for short time slices, with which this thread runs at once when it has something to do.

A thread that wakes interrupts a busy program only if its own slice ends sooner. Linux 6.12 and newer take the
length of the slice from a program; it does not change how much of the processor the program gets.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys

SLICE_NS = 100_000  # the shortest that Linux accepts
_RESET_ON_FORK = 1
_ATTRIBUTES = struct.Struct("=IIQiIQQQ")  # struct sched_attr
_SYS_SCHED_SETATTR = {"x86_64": 314, "aarch64": 274}
_IS_64_BIT = sys.maxsize > 1 << 32  # else the kernel has other numbers than its name says


def shorten_time_slice() -> None:
    """Give this thread short slices. Threads and processes that it starts from now on have the usual ones.

    Do nothing where the kernel does not allow it, or if the user has chosen a scheduling policy.
    """
    number = _SYS_SCHED_SETATTR.get(os.uname().machine)
    if sys.platform != "linux" or number is None or not _IS_64_BIT:
        return
    policy, niceness = os.sched_getscheduler(0), os.getpriority(os.PRIO_PROCESS, 0)
    if policy == os.SCHED_OTHER:
        attributes = _ATTRIBUTES.pack(_ATTRIBUTES.size, policy, _RESET_ON_FORK, niceness, 0, SLICE_NS, 0, 0)
        ctypes.CDLL(None).syscall(number, 0, attributes, 0)
