"""Signal the program of a sandboxed run, which may have left the process group of bubblewrap."""

import os
from contextlib import suppress
from pathlib import Path

_NAME = "bwrap\n"


def signal_program(pid: int, number: int) -> None:
    """Send a signal to the group of the program that the bubblewrap with this pid runs.

    Do nothing if the program is in the group of bubblewrap, which the keeper signals. An interactive shell
    makes a group of its own. The program is the child of the first process of the namespace.
    """
    with suppress(OSError):
        for first in first_processes(pid):
            for program in _children(first):
                group = os.getpgid(program)
                if group != os.getpgid(pid):
                    os.killpg(group, number)


def first_processes(pid: int) -> list[int]:
    """Return the first process of the namespace that this bubblewrap has made, with which all others end.

    Return nothing if the process is another program.
    """
    with suppress(OSError):
        if pid > 0 and Path(f"/proc/{pid}/comm").read_text() == _NAME:
            return _children(pid)
    return []


def _children(pid: int) -> list[int]:
    """Return the pids of the children of a process."""
    return list(map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))
