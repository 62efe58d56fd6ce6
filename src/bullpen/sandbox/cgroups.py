"""Make, read and end control groups: one for each session with sandboxed runs, and in it one for each run.

cgroup v2 and v1 have the same groups and other file names. In v2 they lie beside the group of the server,
because a group with processes cannot pass controllers on; in v1 they lie in it, in each hierarchy.
"""

import os
import signal
import threading
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Literal

from msgspec import Struct

from ..domain.limits import NEARLY, ResourceLimits, RunUsage
from .limit_launcher import NICENESS

NEEDED = ("memory", "pids")
CONTROLLERS = (*NEEDED, "cpu")  # with cpu, each session gets the same share, however many processes it has
SHARES = 335  # the weight that the kernel gives to this niceness; usual is 1024
END_SECONDS = 5.0  # for the processes of a group to end
POLL_SECONDS = 0.01

CgroupVersion = Literal[1, 2]


class GroupBase(Struct, frozen=True):
    """Where groups can be made: the directory for each controller, which is the same one in v2."""

    version: CgroupVersion
    directories: Mapping[str, Path]


class RunGroup:
    """The group of one run: a directory for each controller. The group of its session is the parent."""

    def __init__(self, version: CgroupVersion, directories: Mapping[str, Path]) -> None:
        self._version = version
        self._of = directories
        self._refused = self._count_refused()

    @property
    def process_files(self) -> list[Path]:
        """The files to which a process writes 0 to join the group."""
        return [directory / "cgroup.procs" for directory in _distinct(self._of.values())]

    @property
    def pids(self) -> list[int]:
        """The processes in the group."""
        with suppress(OSError):
            return list(map(int, (self._of["pids"] / "cgroup.procs").read_text().split()))
        return []

    def usage(self) -> RunUsage:
        """Return what the run uses that the kernel does not limit by itself, and what the kernel did."""
        refused = self._count_refused()
        is_refused, self._refused = refused > self._refused, refused
        return RunUsage(
            memory=self._swapping_memory(),
            processes=_read_number(self._of["pids"] / "pids.current"),
            is_refused=is_refused,
            is_killed=_read_field(self._memory_file("memory.events", "memory.oom_control"), "oom_kill") > 0,
            is_full=self._is_full(),
        )

    def end(self) -> None:
        """End all processes of the group. It waits for that, so call it in a thread."""
        _write(self._of["pids"] / "pids.max", 0)  # it could start processes faster than they are ended
        _write(self._of["pids"] / "cgroup.kill", 1)  # in v2, since Linux 5.14
        deadline = time.monotonic() + END_SECONDS
        while (pids := self.pids) and time.monotonic() < deadline:
            for pid in pids:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(POLL_SECONDS)

    def remove(self) -> bool:
        """Remove the group, and an empty one of its session; return False if processes are left in it."""
        directories = _distinct(self._of.values())
        _remove(each for directory in directories for each in (directory, directory.parent))
        return not any(directory.exists() for directory in directories)

    def _count_refused(self) -> int:
        """Return how often a process of the run, or of its session, could not start another one."""
        run = self._of["pids"]
        return sum(_read_field(directory / "pids.events", "max") for directory in (run, run.parent))

    def _swapping_memory(self) -> int:
        """Return the memory of a run with its swap; 0 without swap or in v1, where the kernel limits both."""
        memory = self._of["memory"]
        swapped = _read_number(memory / "memory.swap.current") if self._version == 2 else 0
        return swapped and swapped + sum(
            _read_field(memory / "memory.stat", name) for name in ("anon", "shmem")
        )

    def _is_full(self) -> bool:
        """Return whether the session has reached its limit of memory at some time."""
        session = self._of["memory"].parent
        if self._version == 2:
            return _read_field(session / "memory.events", "oom") > 0
        used, limit = (_read_number(session / f"memory.{of}_in_bytes") for of in ("max_usage", "limit"))
        return used >= limit * NEARLY  # newer kernels do not count how often it was refused

    def _memory_file(self, in_v2: str, in_v1: str) -> Path:
        """Return a file of the memory controller."""
        return self._of["memory"] / (in_v2 if self._version == 2 else in_v1)


class ControlGroups:
    """The control groups of one data directory."""

    def __init__(self, base: GroupBase, name: str) -> None:
        self.version = base.version
        self._of = {controller: path / name for controller, path in base.directories.items()}
        self._lock = threading.Lock()  # a group is not made in one that is just being removed

    @classmethod
    def find(cls, name: str) -> "ControlGroups | None":
        """Return the groups in a group of this name; None if this process cannot make groups with limits."""
        try:
            with open("/proc/self/mountinfo") as mounts, open("/proc/self/cgroup") as own:
                bases = find_bases(mounts.read(), own.read())
        except OSError:
            return None
        return next((found for base in bases if (found := cls(base, name)).can_limit()), None)

    def can_limit(self) -> bool:
        """Return whether groups with limits can be made."""
        try:
            self._make_top()
        except OSError:
            return False
        if self.version == 2:
            (top,) = _distinct(self._of.values())
            passed_on = (top / "cgroup.subtree_control").read_text().split()
            # A process moves between two groups only if this process may write the one around them.
            usable = set(NEEDED) <= set(passed_on) and os.access(top.parent / "cgroup.procs", os.W_OK)
        else:
            limited = (self._of["memory"] / "memory.limit_in_bytes", self._of["pids"] / "pids.max")
            usable = all(os.access(path, os.W_OK) for path in limited)
        _remove(_distinct(self._of.values()))  # it is made again for the first run
        return usable

    def begin(self, session: str, run: str, limits: ResourceLimits) -> RunGroup:
        """Make the group of a run in that of its session, and set the limits of the session."""
        with self._lock:
            self._make_top()
            of_session = {each: path / session for each, path in self._of.items()}
            for path in _distinct(of_session.values()):
                path.mkdir(exist_ok=True)
                self._pass_on(path)
            self._set_limits(of_session, limits)
            directories = {each: path / run for each, path in of_session.items()}
            for path in _distinct(directories.values()):
                path.mkdir(exist_ok=True)
            if self.version == 2:  # the whole run ends, not the largest of its processes
                _write(directories["memory"] / "memory.oom.group", 1)
            return RunGroup(self.version, directories)

    def find_run(self, run: str) -> RunGroup | None:
        """Return the group of a run that an earlier server has made."""
        for path in self._of["pids"].glob(f"*/{run}"):
            return RunGroup(
                self.version, {each: top / path.parent.name / run for each, top in self._of.items()}
            )
        return None

    def remove(self, group: RunGroup) -> bool:
        """Remove the group of a run; return False if processes are left in it."""
        with self._lock:
            return group.remove()

    def sweep(self) -> bool:
        """Remove all empty groups, which earlier servers have left; return whether none remains."""
        for top in _distinct(self._of.values()):
            _remove(Path(directory) for directory, _, _ in os.walk(top, topdown=False))
        return not any(top.exists() for top in self._of.values())

    def _make_top(self) -> None:
        """Make the group that has those of the sessions."""
        for path in _distinct(self._of.values()):
            self._pass_on(path.parent)
            path.mkdir(exist_ok=True)
            _write(path / "memory.use_hierarchy", 1)  # of v1; newer kernels know nothing else
            self._pass_on(path)
            _write(path / "cpu.weight.nice", NICENESS)
            _write(path / "cpu.shares", SHARES)  # of v1

    def _pass_on(self, directory: Path) -> None:
        """Let the groups in a group of v2 have the controllers."""
        if self.version == 2:
            enabled = (directory / "cgroup.subtree_control").read_text().split()
            for controller in CONTROLLERS:
                if controller not in enabled:
                    _write(directory / "cgroup.subtree_control", f"+{controller}")

    def _set_limits(self, of_session: Mapping[str, Path], limits: ResourceLimits) -> None:
        """Set the limits of a session."""
        _write(of_session["pids"] / "pids.max", limits.processes or "max")
        memory = of_session["memory"]
        if self.version == 2:
            for name in ("memory.max", "memory.swap.max"):
                _write(memory / name, limits.memory or "max")
        else:  # the limit of memory with swap is never less than that of memory
            for name, value in (
                ("memsw.limit", -1),
                ("limit", limits.memory),
                ("memsw.limit", limits.memory),
            ):
                _write(memory / f"memory.{name}_in_bytes", value or -1)


def find_bases(mounts: str, own: str) -> list[GroupBase]:
    """Return where this process might make groups, given its mountinfo and cgroup files in /proc."""
    paths = {
        controller: path
        for line in own.splitlines()
        for _, controllers, path in [line.split(":", 2)]
        for controller in controllers.split(",")
    }
    found: dict[str, Path] = {}
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        root, mount_point = before.split(" ")[3:5]
        kind, _, options = after.split(" ")[:3]
        names = {"cgroup2": [""], "cgroup": options.split(",")}.get(kind, [])
        for name in names:
            if name in paths and PurePosixPath(paths[name]).is_relative_to(root):
                below = PurePosixPath(paths[name]).relative_to(root)
                if name == "" and str(below) != ".":
                    below = below.parent
                found.setdefault(name, Path(mount_point) / below)
    bases = []
    if "" in found:
        bases.append(GroupBase(2, dict.fromkeys(CONTROLLERS, found[""])))
    if all(name in found for name in NEEDED):
        bases.append(GroupBase(1, {name: found[name] for name in CONTROLLERS if name in found}))
    return bases


def _distinct(paths: Iterable[Path]) -> list[Path]:
    """Return each path once."""
    return list(dict.fromkeys(paths))


def _remove(directories: Iterable[Path]) -> None:
    """Remove the groups that are empty."""
    for directory in directories:
        with suppress(OSError):
            directory.rmdir()


def _write(path: Path, value: object) -> None:
    """Write a value to a file of a group, if it exists and the kernel takes the value."""
    with suppress(OSError), open(path, "r+") as file:
        file.write(str(value))


def _read_number(path: Path) -> int:
    """Return the number in a file; 0 if there is none."""
    with suppress(OSError, ValueError):
        return int(path.read_text())
    return 0


def _read_field(path: Path, name: str) -> int:
    """Return the number behind a name in a file with a name and a number in each line; 0 without it."""
    with suppress(OSError):
        for line in path.read_text().splitlines():
            if line.startswith(f"{name} "):
                return int(line.split()[1])
    return 0
