"""Write to stdout how much disk space is taken by changed files, and by removed files that are still open.

This file is run as a script with a low priority, so it imports nothing of Bullpen. Its argument is JSON.
"""

import json
import os
import stat
import sys
from collections.abc import Iterable, Iterator

BLOCK_BYTES = 512  # of st_blocks, on every file system


def changed_bytes(directories: Iterable[str], since_ns: int, pids: Iterable[int]) -> int:
    """Return the bytes of the files that were made or changed since then. A program cannot set this time."""
    found: dict[tuple[int, int], int] = {}
    disks = set()
    waiting = list(directories)
    for directory in waiting:
        disks.add(_disk_of(directory))
    while waiting:
        for entry, status in _entries(waiting.pop()):
            if status.st_ctime_ns >= since_ns:
                found[status.st_dev, status.st_ino] = status.st_blocks * BLOCK_BYTES
            if stat.S_ISDIR(status.st_mode) and status.st_dev in disks:
                waiting.append(entry)
    for status in _removed_files(pids):
        if status.st_dev in disks:
            found[status.st_dev, status.st_ino] = status.st_blocks * BLOCK_BYTES
    return sum(found.values())


def _disk_of(directory: str) -> int:
    """Return the id of the file system of a directory; -1 if it was removed."""
    try:
        return os.stat(directory).st_dev
    except OSError:
        return -1


def _entries(directory: str) -> Iterator[tuple[str, os.stat_result]]:
    """Yield path and status of what is in a directory, as far as it can be read."""
    try:
        with os.scandir(directory) as entries:
            for entry in entries:
                try:
                    yield entry.path, entry.stat(follow_symlinks=False)
                except OSError:  # removed meanwhile
                    continue
    except OSError:
        return


def _removed_files(pids: Iterable[int]) -> Iterator[os.stat_result]:
    """Yield the status of files that processes hold open and that have no name any more."""
    for pid in pids:
        try:
            descriptors = os.listdir(f"/proc/{pid}/fd")
        except OSError:
            continue
        for descriptor in descriptors:
            try:
                status = os.stat(f"/proc/{pid}/fd/{descriptor}")
            except OSError:
                continue
            if stat.S_ISREG(status.st_mode) and status.st_nlink == 0:
                yield status


def main() -> None:
    """Measure what the argument says."""
    order = json.loads(sys.argv[1])
    sys.stdout.write(f"{changed_bytes(order['directories'], order['since'], order['pids'])}\n")


if __name__ == "__main__":
    main()
