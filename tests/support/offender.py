"""Use too much of one thing, as far as the machine stays safe: processes, memory or disk.

The argument `nothing` is for comparisons.
"""

import os
import sys
import time
from contextlib import suppress

SECONDS = 25.0
REST_SECONDS = 1.0
DOUBLINGS = 9  # 512 processes
MEMORY_BYTES = DISK_BYTES = 1 << 30
PIECE = 1 << 20


def bomb() -> None:
    for _ in range(DOUBLINGS):
        with suppress(BlockingIOError):
            os.fork()
    spin()


def hog() -> None:
    kept = [bytearray(os.urandom(16) * (PIECE // 16)) for _ in range(MEMORY_BYTES // PIECE)]
    spin()
    del kept


def fill() -> None:
    with open("filler", "wb", buffering=0) as file:
        os.unlink("filler")  # a removed file takes space too
        for _ in range(DISK_BYTES // PIECE):
            file.write(os.urandom(PIECE))
        spin()


def rest() -> None:
    time.sleep(REST_SECONDS)


def spin() -> None:
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        pass


if __name__ == "__main__":
    {"processes": bomb, "memory": hog, "disk": fill, "nothing": rest}[sys.argv[1]]()
