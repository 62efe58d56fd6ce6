"""The limits of what the sandboxed runs of a session use, and which run has exceeded one of them."""

from collections.abc import Mapping
from typing import Literal, TypeVar

from msgspec import Struct

Excess = Literal["memory", "processes", "disk", "machine"]  # machine: its memory, not that of the session
RunKey = TypeVar("RunKey")

NEARLY = 0.9  # of a limit: below that, what the kernel refused to a run was not because of this limit
_UNITS = ("KiB", "MiB", "GiB", "TiB")


class ResourceLimits(Struct, frozen=True, kw_only=True):
    """What all sandboxed runs of a session may use together; 0 is no limit. Threads count as processes."""

    memory: int = 0  # bytes
    processes: int = 0
    disk: int = 0  # bytes


NO_LIMITS = ResourceLimits()


class RunUsage(Struct, frozen=True):
    """What one run uses, as far as the kernel does not limit it, and what the kernel did about it."""

    memory: int = 0  # bytes
    processes: int = 0
    is_refused: bool = False  # it could not start a process since the last look
    is_killed: bool = False  # the kernel has ended a process of it for lack of memory
    is_full: bool = False  # its session has reached its limit of memory


def find_offenders(limits: ResourceLimits, usages: Mapping[RunKey, RunUsage]) -> dict[RunKey, Excess]:
    """Return the runs of one session that must be ended, each with what it has exceeded.

    If the session as a whole is over a limit, its largest run is ended.
    """
    found: dict[RunKey, Excess] = {
        key: "memory" if usage.is_full else "machine" for key, usage in usages.items() if usage.is_killed
    }
    if found or not usages:
        return found
    if limits.memory and sum(usage.memory for usage in usages.values()) > limits.memory:
        found[max(usages, key=lambda key: usages[key].memory)] = "memory"
    count = sum(usage.processes for usage in usages.values())
    is_refused = any(usage.is_refused for usage in usages.values()) and count >= limits.processes * NEARLY
    if limits.processes and (count > limits.processes or is_refused):
        found[max(usages, key=lambda key: usages[key].processes)] = "processes"
    return found


def describe_excess(limits: ResourceLimits, excess: Excess) -> str:
    """Return the reason for the end of a run."""
    if excess == "machine":
        return "ended: the machine ran out of memory"
    value: int = getattr(limits, excess)
    amount = f"{value} processes" if excess == "processes" else f"{format_size(value)} of {excess}"
    return f"ended: the session used more than {amount} (sandbox_{excess})"


def format_size(size: int) -> str:
    """Return a number of bytes in the largest unit of which it has at least one."""
    number, unit = float(size), "bytes"
    for larger in _UNITS:
        if number < 1024:
            break
        number, unit = number / 1024, larger
    return f"{number:.1f}".removesuffix(".0") + f" {unit}"
