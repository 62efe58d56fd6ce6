"""Measure and end the processes of a run through /proc, where no control group does that."""

import os
import signal
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from ..domain.limits import ResourceLimits, RunKey, RunUsage
from .processes import first_processes

MEASURE_SECONDS = 0.2
MANY = 0.5  # of the processes that a session may have
_PAGE = os.sysconf("SC_PAGE_SIZE")


class RunningProcess(Struct, frozen=True):
    """A process: its parent, its threads, and its resident memory in bytes, shared pages included."""

    parent: int
    threads: int
    resident: int


def read_processes() -> dict[int, RunningProcess]:
    """Return all processes of the machine by pid."""
    found = {}
    for pid in filter(str.isdecimal, os.listdir("/proc")):
        with suppress(OSError, IndexError):  # it has just ended
            fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
            found[int(pid)] = RunningProcess(int(fields[1]), int(fields[17]), int(fields[21]) * _PAGE)
    return found


def find_tree(root: int, processes: Mapping[int, RunningProcess]) -> list[int]:
    """Return a process and its descendants. Under bubblewrap, these are all processes of the run."""
    children: dict[int, list[int]] = {}
    for pid, process in processes.items():
        children.setdefault(process.parent, []).append(pid)
    tree = [root] if root in processes else []
    for pid in tree:  # it grows meanwhile
        tree += children.get(pid, [])
    return tree


def proportional_memory(pid: int) -> int:
    """Return the memory of a process with its swap; what several processes share is divided among them.

    This is slow, and waits for a process that is just forking, which many others may delay.
    """
    with suppress(OSError):
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        return sum(int(line.split()[1]) << 10 for line in lines if line.startswith(("Pss:", "SwapPss:")))
    return 0


def written_bytes(pids: Iterable[int]) -> int:
    """Return what processes have written to disks, with what their ended children wrote."""
    total = 0
    for pid in pids:
        with suppress(OSError):
            for line in Path(f"/proc/{pid}/io").read_text().splitlines():
                if line.startswith("write_bytes:"):
                    total += int(line.split()[1])
    return total


def may_exceed(limits: ResourceLimits) -> bool:
    """Return whether the whole machine uses more than a session may use."""
    memory = read_memory()
    used = memory["MemTotal"] - memory["MemAvailable"] + used_swap(memory)
    return bool(
        (limits.memory and used > limits.memory) or (limits.processes and count_tasks() > limits.processes)
    )


def read_memory() -> dict[str, int]:
    """Return the fields of /proc/meminfo in bytes."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    return {name: int(rest.split()[0]) << 10 for name, _, rest in (line.partition(":") for line in lines)}


def used_swap(memory: Mapping[str, int]) -> int:
    """Return how much of the swap is used."""
    return memory["SwapTotal"] - memory["SwapFree"]


def count_tasks() -> int:
    """Return the number of processes and threads of the machine."""
    return int(Path("/proc/loadavg").read_text().split()[3].partition("/")[2])


def measure_trees(
    roots: Mapping[RunKey, int], processes: Mapping[int, RunningProcess], limits: ResourceLimits
) -> dict[RunKey, RunUsage]:
    """Return what the runs of a session use, given the first process of each and all processes.

    The memory is 0 if it cannot be over the limit. Else it is that of the largest processes, as many as are
    measured in a short time. With many processes it is not measured: those of a fork bomb would delay it.
    """
    trees = {key: find_tree(root, processes) for key, root in roots.items()}
    counts = {key: sum(processes[pid].threads for pid in tree) for key, tree in trees.items()}
    memory = dict.fromkeys(roots, 0)
    by_size = sorted(
        ((processes[pid].resident, pid, key) for key, tree in trees.items() for pid in tree), reverse=True
    )
    is_near = limits.memory and sum(each[0] for each in by_size) + used_swap(read_memory()) > limits.memory
    if is_near and not (limits.processes and sum(counts.values()) > limits.processes * MANY):
        deadline = time.monotonic() + MEASURE_SECONDS
        for _, pid, key in by_size:
            memory[key] += proportional_memory(pid)
            if sum(memory.values()) > limits.memory or time.monotonic() > deadline:
                break
    return {key: RunUsage(memory[key], counts[key]) for key in roots}


def end_tree(root: int) -> None:
    """End the processes of a run: under bubblewrap all at once, since they end with the first one."""
    if firsts := first_processes(root):
        _signal(firsts, signal.SIGKILL)
        return
    for number in (signal.SIGSTOP, signal.SIGKILL):  # while stopped, they start no further ones
        signalled: set[int] = set()
        while tree := set(find_tree(root, read_processes())) - signalled:
            _signal(tree, number)
            signalled |= tree


def _signal(pids: Iterable[int], number: int) -> None:
    """Send a signal to processes that may have ended."""
    for pid in pids:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)
