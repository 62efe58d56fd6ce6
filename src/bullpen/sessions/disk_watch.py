"""End the sandboxed run that writes most if the files of its session take more disk space than they may.

Measuring many files is slow. A session cannot have written more than what its disks have lost in free space,
so its files are measured only when that is more than what it may still write. They are measured as well when
much space was freed, since the session may have removed files.
"""

import asyncio
import json
import math
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import structlog

from .. import clock
from ..domain.limits import describe_excess
from ..intervals import intervals
from ..processes import run_process
from ..sandbox import disk_usage
from ..sandbox.limit_launcher import NICENESS
from ..sandbox.process_tree import find_tree, read_processes, written_bytes
from ..workers.children import ChildHandle
from .limit_watch import end_run, limited_runs
from .session import Session
from .sessions import Sessions

log = structlog.get_logger()

STEPS = 16  # the limit is exceeded by at most this part before the files are measured again
MEASURE_SECONDS = 600.0


class DiskGate:
    """Decides when the files of a session are measured, and whether they take too much space."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        # What it may write or remove before it is measured; at first its size is not known.
        self._left = limit // STEPS
        self._free: Mapping[int, int] = {}
        self._size = 0

    def must_measure(self, free: Mapping[int, int]) -> bool:
        """Note the free space of each disk, and return whether the size may have changed too much."""
        self._left -= sum(abs(self._free.get(disk, now) - now) for disk, now in free.items())
        self._free = free
        return self._left < 0

    def is_over(self, size: int) -> bool:
        """Note the size of the files, and return whether it is over the limit and larger than before.

        A session that is over its limit can thus still start an agent that removes files.
        """
        has_grown, self._size = size > self._size, size
        self._left = max(self._limit - size, self._limit // STEPS)
        return has_grown and size > self._limit


class DiskWatch:
    """Looks at the free space of the disks on which sandboxed runs write, again and again."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions
        self._limits = sessions.services.children.limits.values
        self._gates: dict[str, DiskGate] = {}
        self._pauses: dict[str, float] = {}  # until when a session is not measured again

    async def run(self) -> None:
        """Check the sessions until cancelled; return at once if there is no limit."""
        async with asyncio.TaskGroup() as tasks:
            while self._limits.disk:
                await asyncio.sleep(intervals().limit_check)
                found = limited_runs(self._sessions)
                for session, children in found:
                    gate = self._gates.setdefault(session.id, DiskGate(self._limits.disk))
                    directories = self._directories(session, children)
                    free = await asyncio.to_thread(_free_space, directories)
                    if gate.must_measure(free) and clock.monotonic() >= self._pauses.get(session.id, 0):
                        self._pauses[session.id] = math.inf  # until it is measured
                        tasks.create_task(self._check(session, children, gate, directories))
                current = {session.id for session, _ in found}
                self._gates = {id: gate for id, gate in self._gates.items() if id in current}

    async def _check(
        self, session: Session, children: Sequence[ChildHandle], gate: DiskGate, directories: Sequence[str]
    ) -> None:
        """Measure the files of a session, and end the run that writes most if they are too large."""
        began = clock.monotonic()
        pids = await asyncio.to_thread(_pids_of, children)
        size = await _measure(
            directories, session.snapshot.created_at, [pid for tree in pids for pid in tree]
        )
        now = clock.monotonic()
        self._pauses[session.id] = now + (now - began)  # at most half of the time is spent on measuring
        if size is not None and gate.is_over(size):
            written = await asyncio.to_thread(lambda: list(map(written_bytes, pids)))
            offender = max(zip(written, children, strict=True), key=lambda each: each[0])[1]
            await end_run(offender, describe_excess(self._limits, "disk"))

    def _directories(self, session: Session, children: Sequence[ChildHandle]) -> list[str]:
        """Return where only this session writes: its workspaces, and what its runs see as /tmp."""
        workspaces = [session.snapshot.worker(child.worker_id).workspace for child in children]
        temporary = self._sessions.services.sandbox.planner.temporary_directory(session.id)
        return list(dict.fromkeys([*workspaces, str(temporary)]))


def _free_space(directories: Sequence[str]) -> dict[int, int]:
    """Return the free bytes of each disk that has one of the directories, by the id of the disk."""
    found = {}
    for directory in directories:
        try:
            disk = os.statvfs(directory)
        except OSError:  # removed
            continue
        found[disk.f_fsid] = disk.f_bfree * disk.f_frsize
    return found


def _pids_of(children: Sequence[ChildHandle]) -> list[list[int]]:
    """Return the processes of each run."""
    processes = read_processes()
    return [
        (child.group.pids if child.group else []) or find_tree(child.pid, processes) for child in children
    ]


async def _measure(directories: Sequence[str], since_ms: int, pids: Sequence[int]) -> int | None:
    """Return the bytes of the files in the directories that have changed since then; None if that fails."""
    order = json.dumps({"directories": directories, "since": since_ms * 1_000_000, "pids": pids})
    # The start of Python would delay the server too. With a lower priority than theirs, runs could delay it.
    argv = ["nice", "-n", str(NICENESS), sys.executable, "-I", "-S", str(Path(disk_usage.__file__)), order]
    try:
        ended = await run_process(
            argv, env={}, cwd="/", timeout=MEASURE_SECONDS, limit=1024, own_session=False
        )
        return int(ended.output)
    except (OSError, TimeoutError, ValueError) as error:
        log.warning("the files of a session could not be measured", reason=str(error) or "it took too long")
        return None
