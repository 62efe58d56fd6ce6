"""Off the core of a program that prints and waits for it, and only if there is one for each."""

import os
import pty
from collections.abc import Iterator
from pathlib import Path

import pytest

from bullpen.keeper import core_placement
from bullpen.keeper.core_placement import CorePlacement

PROGRAM = 4242
CORE = 1


class Machine:
    """Two cores, a terminal, and what the kernel counts; time passes by its clock."""

    def __init__(self, proc: Path) -> None:
        self.moves: list[set[int]] = []
        self.affinity = {0, 1}
        self.program = PROGRAM  # in the terminal's foreground
        self._proc = proc
        self._now = 0.0
        self._seconds = {"we": [0.0, 0.0], "it": [0.0, 0.0]}  # run and waited
        for pid in (PROGRAM, PROGRAM + 1, os.getpid()):
            (proc / str(pid)).mkdir()
        self.others(0)

    def others(self, count: int) -> None:
        """So many run besides the program and ourselves."""
        (self._proc / "loadavg").write_text(f"0.50 0.40 0.30 {count + 2}/200 777\n")

    def pass_time(self, seconds: float, *, we_wait: float, it_runs: float, it_waits: float) -> float:
        self._now += seconds
        for who, run, waited in (("we", 0.3, we_wait), ("it", it_runs, it_waits)):
            self._seconds[who][0] += run * seconds
            self._seconds[who][1] += waited * seconds
        self._write()
        return self._now

    def end_program(self) -> None:
        self.program = PROGRAM + 2

    def set_affinity(self, pid: int, cores: set[int]) -> None:
        assert pid == 0, "only ours"
        self.moves.append(set(cores))
        self.affinity = set(cores)

    def _write(self) -> None:
        for pid, who in ((os.getpid(), "we"), (PROGRAM, "it"), (PROGRAM + 1, "it")):
            ran, waited = (int(seconds * 1e9) for seconds in self._seconds[who])
            (self._proc / str(pid) / "schedstat").write_text(f"{ran} {waited} 12\n")
            words = " ".join(["0"] * 35)
            (self._proc / str(pid) / "stat").write_text(f"{pid} (a) b ()) R {words} {CORE} 0 0\n")


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    machine = Machine(tmp_path)
    monkeypatch.setattr(core_placement, "_PROC", str(tmp_path))
    monkeypatch.setattr(os, "tcgetpgrp", lambda _: machine.program)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(machine.affinity))
    monkeypatch.setattr(os, "sched_setaffinity", machine.set_affinity)
    return machine


@pytest.fixture
def looking(machine: Machine) -> CorePlacement:
    """One that has looked before."""
    looking = CorePlacement()
    looking.check(0, machine.pass_time(1, we_wait=0, it_runs=0, it_waits=0))
    return looking


def look(looking: CorePlacement, machine: Machine, we_wait: float, it_runs: float, it_waits: float) -> float:
    return looking.check(0, machine.pass_time(0.01, we_wait=we_wait, it_runs=it_runs, it_waits=it_waits))


def test_it_leaves_the_core_of_a_program_that_waits_for_it(looking: CorePlacement, machine: Machine) -> None:
    look(looking, machine, we_wait=0.5, it_runs=0.6, it_waits=0.1)
    assert machine.moves == [{0}, {0, 1}]


def test_a_worker_on_the_programs_core_is_driven_off_it_first(
    looking: CorePlacement, machine: Machine
) -> None:
    look(looking, machine, we_wait=0.05, it_runs=0.4, it_waits=0.15)
    look(looking, machine, we_wait=0.05, it_runs=0.4, it_waits=0.15)
    assert machine.moves == [{CORE}, {0, 1}, {0}, {0, 1}]


@pytest.mark.parametrize(
    ("it_runs", "it_waits"),
    [pytest.param(0.9, 0.0, id="runs alone"), pytest.param(0.1, 0.0, id="prints little"), (0.8, 0.1)],
)
def test_a_good_place_is_kept(
    looking: CorePlacement, machine: Machine, it_runs: float, it_waits: float
) -> None:
    look(looking, machine, we_wait=0.5, it_runs=it_runs, it_waits=it_waits)
    assert machine.moves == []


def test_nobody_moves_on_a_busy_machine(looking: CorePlacement, machine: Machine) -> None:
    machine.others(1)
    look(looking, machine, we_wait=0.5, it_runs=0.5, it_waits=0.3)
    assert machine.moves == []


def test_nobody_moves_where_there_is_one_core(looking: CorePlacement, machine: Machine) -> None:
    machine.affinity = {CORE}
    look(looking, machine, we_wait=0.5, it_runs=0.5, it_waits=0.3)
    assert machine.moves == []


def test_what_was_counted_long_ago_or_of_another_program_moves_nobody(
    looking: CorePlacement, machine: Machine
) -> None:
    looking.check(0, machine.pass_time(1, we_wait=0.5, it_runs=0.5, it_waits=0.3))
    machine.program = PROGRAM + 1
    look(looking, machine, we_wait=0.5, it_runs=0.5, it_waits=0.3)
    assert machine.moves == []
    look(looking, machine, we_wait=0.5, it_runs=0.5, it_waits=0.3)
    assert machine.moves != []


def test_moves_that_do_not_help_become_seldom_until_one_does(
    looking: CorePlacement, machine: Machine
) -> None:
    pauses = [look(looking, machine, we_wait=0.5, it_runs=0.5, it_waits=0.3) for _ in range(100)]
    assert pauses[0] < 0.01
    assert pauses[-1] == 1.0
    look(looking, machine, we_wait=0.5, it_runs=0.9, it_waits=0.0)
    assert look(looking, machine, we_wait=0.5, it_runs=0.5, it_waits=0.3) == pauses[0]


def test_a_program_that_is_gone_is_not_looked_at(looking: CorePlacement, machine: Machine) -> None:
    machine.end_program()
    assert look(looking, machine, we_wait=0.5, it_runs=0.5, it_waits=0.3) == 1.0
    assert machine.moves == []


@pytest.fixture
def busy_terminal() -> Iterator[int]:
    """The end of one on which a program prints without end."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execvp("yes", ["yes"])
    yield terminal
    os.close(terminal)
    os.waitpid(pid, 0)


def test_afterwards_we_may_run_where_we_could_before(
    busy_terminal: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the kernel's own counts, and every reason to move."""
    before = os.sched_getaffinity(0)
    moves: list[set[int]] = []
    really_move = os.sched_setaffinity

    def move(pid: int, cores: set[int]) -> None:
        moves.append(cores)
        really_move(pid, cores)

    monkeypatch.setattr(os, "sched_setaffinity", move)
    for name, share in (("_PROGRAM_WAITS", -1.0), ("_PROGRAM_RUNS", 1e9), ("_MAX_AGE_SECONDS", 1e9)):
        monkeypatch.setattr(core_placement, name, share)
    monkeypatch.setattr(core_placement, "_runnable_tasks", lambda: 1)
    looking = CorePlacement()
    for now in range(1, 20):
        os.read(busy_terminal, 4096)
        assert looking.check(busy_terminal, float(now)) < 1.0
        assert os.sched_getaffinity(0) == before
    assert moves or len(before) == 1
