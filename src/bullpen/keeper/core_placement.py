"""Where the keeper runs while a terminal floods: not on the core of the program that prints.

Three take part: the program, the kernel's worker that carries what it prints, and we who read it. It goes
fastest when the program has a core to itself and the worker shares ours. But where a core is slow to wake, as
on a virtual machine, Linux leaves everybody where he was: often two on the program's core, and another idles.
The worker cannot be moved and the program is not ours to move. So we move, until the program does not wait.
"""

from __future__ import annotations

import os

_PROC = "/proc"
_LOOK = 0.008  # seconds until we look again
_SOON = 0.002  # the same after a move
_LATER = 1.0  # the same where there is nothing to see; and the longest after a move
_STALE = 0.05  # seconds: what was counted longer ago says nothing of now
_TRIES = 64  # moves that did not help, after which we move more and more seldom
# Shares of the time that passed:
_WAITS = 0.03  # the program waits for its core: somebody shares it
_RUNS = 0.7  # the program runs: it goes as fast as it can
_ALONE = 0.2  # we wait less than this for ours: nobody shares it, so the worker is on the program's


class CorePlacement:
    """Looks now and then, and moves. A move is an instant: afterwards we may run wherever we could before."""

    def __init__(self) -> None:
        self._we: _SchedulerCounts | None = None
        self._program: _SchedulerCounts | None = None
        self._looked = 0.0  # when
        self._counted = (0.0, 0.0, 0.0)  # seconds then that we had waited, it had run and it had waited
        self._moves = 0  # since we last were in a good place
        self._joined = False  # the last of them was onto the program's core

    def look(self, terminal: int, now: float) -> float:
        """While this terminal floods; seconds until we should look again."""
        try:
            return self._look(*self._tasks(os.tcgetpgrp(terminal)), now)
        except (OSError, ValueError, IndexError):  # the program is gone, or this is not Linux
            return _LATER

    def _look(self, we: _SchedulerCounts, program: _SchedulerCounts, now: float) -> float:
        then, before = self._looked, self._counted
        self._looked, self._counted = now, (we.times()[1], *program.times())
        if now - then > _STALE:
            self._moves = 0
            return _LOOK
        we_waited, it_ran, it_waited = (
            (seconds - earlier) / (now - then) for seconds, earlier in zip(self._counted, before, strict=True)
        )
        if it_waited < _WAITS or it_ran > _RUNS:
            self._moves = 0
            return _LOOK
        core, it_runs = program.where()
        cores = os.sched_getaffinity(0)
        others = _running() - it_runs - 1
        if others + 2 > len(cores):  # no core for the program and another for us
            return _LOOK
        self._joined = we_waited < _ALONE and not self._joined
        _move(cores, core, join=self._joined)
        self._moves += 1
        return _SOON if self._moves <= _TRIES else min(_SOON * 2 ** (self._moves - _TRIES), _LATER)

    def _tasks(self, pid: int) -> tuple[_SchedulerCounts, _SchedulerCounts]:
        """Ourselves and the program."""
        if self._we is None:
            self._we = _SchedulerCounts(os.getpid())
        if self._program is None or self._program.pid != pid:
            if self._program is not None:
                self._program.close()
                self._program = None
            self._program = _SchedulerCounts(pid)
            self._looked = 0.0
        return self._we, self._program


class _SchedulerCounts:
    """What the kernel counts of a process."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._stat = os.open(f"{_PROC}/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
        try:
            self._schedstat = os.open(f"{_PROC}/{pid}/schedstat", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            os.close(self._stat)
            raise

    def times(self) -> tuple[float, float]:
        """Seconds it has run, and has waited for its core."""
        ran, waited, _ = os.pread(self._schedstat, 256, 0).split()
        return int(ran) / 1e9, int(waited) / 1e9

    def where(self) -> tuple[int, bool]:
        """The core it runs on, or ran on; and whether it runs or waits for that now."""
        words = os.pread(self._stat, 4096, 0).rpartition(b")")[2].split()
        return int(words[36]), words[0] == b"R"

    def close(self) -> None:
        os.close(self._stat)
        os.close(self._schedstat)


def _running() -> int:
    """How many run or wait for a core now, on the whole machine and with us."""
    with open(f"{_PROC}/loadavg", "rb", buffering=0) as load:
        return int(load.read(256).split()[3].partition(b"/")[0])


def _move(cores: set[int], core: int, join: bool) -> None:
    """Onto this core, from where the worker soon flees to another; or away from it."""
    if target := cores & {core} if join else cores - {core}:
        os.sched_setaffinity(0, target)
        os.sched_setaffinity(0, cores)
