"""Choose the CPU core on which the keeper reads a flood: not the core of the program that prints it.

Three tasks take part: the program, the kernel worker that moves its output through the pty, and the keeper.
They are fastest when the program has a core of its own and the worker shares the core of the keeper. But on
machines whose idle cores are slow to wake, such as virtual machines, Linux does not migrate tasks: often two
of the three stay on the program's core while another core idles. The keeper cannot move the worker, and must
not change the CPU affinity of the user's program. So it moves itself until the program no longer waits.
"""

from __future__ import annotations

import os

_PROC = "/proc"
_CHECK_SECONDS = 0.008  # from one check to the next
_RECHECK_SECONDS = 0.002  # the same after a move
_MAX_CHECK_SECONDS = 1.0  # the same where nothing can be measured, and the longest interval after moves
_MAX_AGE_SECONDS = 0.05  # counts that are older say nothing about the present
_MAX_QUICK_MOVES = 64  # without success; after these the interval doubles with each move
# Shares of the time between two checks:
_PROGRAM_WAITS = 0.03  # the program waits for its core: another task shares it
_PROGRAM_RUNS = 0.7  # the program runs: it is as fast as it can be
_KEEPER_ALONE = 0.2  # the keeper waits less than this: the worker is not on its core but on the program's


class CorePlacement:
    """Moves the keeper to another core at times. Its CPU affinity is the same before and after a move."""

    def __init__(self) -> None:
        self._keeper: _SchedulerCounts | None = None
        self._program: _SchedulerCounts | None = None
        self._checked_at = 0.0
        # Seconds at that time: the keeper had waited, the program had run, the program had waited.
        self._counted = (0.0, 0.0, 0.0)
        self._moves = 0  # since the keeper was last on a good core
        self._joined = False  # the last move was to the program's core

    def check(self, terminal: int, now: float) -> float:
        """Move the keeper if the program in this terminal waits; return the seconds until the next check."""
        try:
            return self._check(*self._tasks(os.tcgetpgrp(terminal)), now)
        except (OSError, ValueError, IndexError):  # the program is gone, or this is not Linux
            return _MAX_CHECK_SECONDS

    def _check(self, keeper: _SchedulerCounts, program: _SchedulerCounts, now: float) -> float:
        """Move if the program has waited since the last check; return the seconds until the next check."""
        then, before = self._checked_at, self._counted
        self._checked_at, self._counted = now, (keeper.times()[1], *program.times())
        if now - then > _MAX_AGE_SECONDS:
            self._moves = 0
            return _CHECK_SECONDS
        keeper_waited, program_ran, program_waited = (
            (seconds - earlier) / (now - then) for seconds, earlier in zip(self._counted, before, strict=True)
        )
        if program_waited < _PROGRAM_WAITS or program_ran > _PROGRAM_RUNS:
            self._moves = 0
            return _CHECK_SECONDS
        core, is_runnable = program.core()
        cores = os.sched_getaffinity(0)
        others = _runnable_tasks() - is_runnable - 1
        if others + 2 > len(cores):  # no core for the program and another for the keeper
            return _CHECK_SECONDS
        self._joined = keeper_waited < _KEEPER_ALONE and not self._joined
        _move(cores, core, join=self._joined)
        self._moves += 1
        slow_moves = max(0, self._moves - _MAX_QUICK_MOVES)
        return min(_RECHECK_SECONDS * 2.0**slow_moves, _MAX_CHECK_SECONDS)

    def _tasks(self, pid: int) -> tuple[_SchedulerCounts, _SchedulerCounts]:
        """Return the counts of the keeper and of the program with this pid."""
        if self._keeper is None:
            self._keeper = _SchedulerCounts(os.getpid())
        if self._program is None or self._program.pid != pid:
            if self._program is not None:
                self._program.close()
                self._program = None
            self._program = _SchedulerCounts(pid)
            self._checked_at = 0.0
        return self._keeper, self._program


class _SchedulerCounts:
    """The scheduler statistics that the kernel keeps of one process."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._stat = os.open(f"{_PROC}/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
        try:
            self._schedstat = os.open(f"{_PROC}/{pid}/schedstat", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            os.close(self._stat)
            raise

    def times(self) -> tuple[float, float]:
        """Return the seconds for which the process has run, and those for which it has waited for a core."""
        ran, waited, _ = os.pread(self._schedstat, 256, 0).split()
        return int(ran) / 1e9, int(waited) / 1e9

    def core(self) -> tuple[int, bool]:
        """Return the core on which the process runs or ran last, and whether the process is runnable now."""
        words = os.pread(self._stat, 4096, 0).rpartition(b")")[2].split()
        return int(words[36]), words[0] == b"R"

    def close(self) -> None:
        """Close the files of the statistics."""
        os.close(self._stat)
        os.close(self._schedstat)


def _runnable_tasks() -> int:
    """Return how many tasks of the whole machine run or wait for a core, this process included."""
    with open(f"{_PROC}/loadavg", "rb", buffering=0) as load:
        return int(load.read(256).split()[3].partition(b"/")[0])


def _move(cores: set[int], core: int, join: bool) -> None:
    """Move this process onto `core`, or away from it, and allow all its cores again.

    Joining the program's core makes Linux migrate the kernel worker from there to another core.
    """
    if target := cores & {core} if join else cores - {core}:
        os.sched_setaffinity(0, target)
        os.sched_setaffinity(0, cores)
