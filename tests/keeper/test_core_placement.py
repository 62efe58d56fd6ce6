"""The keeper leaves the core of a program that prints and waits for it, if another core is free."""

import os
import pty
from collections.abc import Iterator
from pathlib import Path

import pytest

from bullpen.keeper import core_placement
from bullpen.keeper.core_placement import CorePlacement

PROGRAM = 4242
CORE = 1


class SimulatedMachine:
    """Two cores, a terminal, and the scheduler statistics of the keeper and a program."""

    def __init__(self, proc: Path) -> None:
        self.moves: list[set[int]] = []
        self.affinity = {0, 1}
        self.program = PROGRAM  # in the terminal's foreground
        self._proc = proc
        self._now = 0.0
        self._seconds = {"keeper": [0.0, 0.0], "program": [0.0, 0.0]}  # run and waited
        for pid in (PROGRAM, PROGRAM + 1, os.getpid()):
            (proc / str(pid)).mkdir()
        self.set_other_tasks(0)

    def set_other_tasks(self, count: int) -> None:
        """Set the number of runnable tasks besides the program and the keeper."""
        (self._proc / "loadavg").write_text(f"0.50 0.40 0.30 {count + 2}/200 777\n")

    def pass_time(
        self, seconds: float, *, keeper_waits: float, program_runs: float, program_waits: float
    ) -> float:
        self._now += seconds
        for name, run, waited in (("keeper", 0.3, keeper_waits), ("program", program_runs, program_waits)):
            self._seconds[name][0] += run * seconds
            self._seconds[name][1] += waited * seconds
        self._write()
        return self._now

    def end_program(self) -> None:
        self.program = PROGRAM + 2

    def set_affinity(self, pid: int, cores: set[int]) -> None:
        assert pid == 0, "the affinity of another process was changed"
        self.moves.append(set(cores))
        self.affinity = set(cores)

    def _write(self) -> None:
        for pid, name in ((os.getpid(), "keeper"), (PROGRAM, "program"), (PROGRAM + 1, "program")):
            ran, waited = (int(seconds * 1e9) for seconds in self._seconds[name])
            (self._proc / str(pid) / "schedstat").write_text(f"{ran} {waited} 12\n")
            words = " ".join(["0"] * 35)
            (self._proc / str(pid) / "stat").write_text(f"{pid} (a) b ()) R {words} {CORE} 0 0\n")


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SimulatedMachine:
    machine = SimulatedMachine(tmp_path)
    monkeypatch.setattr(core_placement, "_PROC", str(tmp_path))
    monkeypatch.setattr(os, "tcgetpgrp", lambda _: machine.program)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(machine.affinity))
    monkeypatch.setattr(os, "sched_setaffinity", machine.set_affinity)
    return machine


@pytest.fixture
def placement(machine: SimulatedMachine) -> CorePlacement:
    """Return a placement that has checked once."""
    placement = CorePlacement()
    placement.check(0, machine.pass_time(1, keeper_waits=0, program_runs=0, program_waits=0))
    return placement


def check(
    placement: CorePlacement,
    machine: SimulatedMachine,
    keeper_waits: float,
    program_runs: float,
    program_waits: float,
) -> float:
    return placement.check(
        0,
        machine.pass_time(
            0.01, keeper_waits=keeper_waits, program_runs=program_runs, program_waits=program_waits
        ),
    )


def test_the_keeper_leaves_the_core_of_a_program_that_waits_for_it(
    placement: CorePlacement, machine: SimulatedMachine
) -> None:
    check(placement, machine, keeper_waits=0.5, program_runs=0.6, program_waits=0.1)
    assert machine.moves == [{0}, {0, 1}]


def test_a_kernel_worker_on_the_core_of_the_program_is_displaced_first(
    placement: CorePlacement, machine: SimulatedMachine
) -> None:
    check(placement, machine, keeper_waits=0.05, program_runs=0.4, program_waits=0.15)
    check(placement, machine, keeper_waits=0.05, program_runs=0.4, program_waits=0.15)
    assert machine.moves == [{CORE}, {0, 1}, {0}, {0, 1}]


@pytest.mark.parametrize(
    ("program_runs", "program_waits"),
    [pytest.param(0.9, 0.0, id="runs alone"), pytest.param(0.1, 0.0, id="prints little"), (0.8, 0.1)],
)
def test_the_keeper_stays_while_the_program_does_not_wait_for_it(
    placement: CorePlacement, machine: SimulatedMachine, program_runs: float, program_waits: float
) -> None:
    check(placement, machine, keeper_waits=0.5, program_runs=program_runs, program_waits=program_waits)
    assert machine.moves == []


def test_the_keeper_does_not_move_on_a_busy_machine(
    placement: CorePlacement, machine: SimulatedMachine
) -> None:
    machine.set_other_tasks(1)
    check(placement, machine, keeper_waits=0.5, program_runs=0.5, program_waits=0.3)
    assert machine.moves == []


def test_the_keeper_does_not_move_with_one_core(placement: CorePlacement, machine: SimulatedMachine) -> None:
    machine.affinity = {CORE}
    check(placement, machine, keeper_waits=0.5, program_runs=0.5, program_waits=0.3)
    assert machine.moves == []


def test_old_statistics_and_those_of_another_program_are_ignored(
    placement: CorePlacement, machine: SimulatedMachine
) -> None:
    placement.check(0, machine.pass_time(1, keeper_waits=0.5, program_runs=0.5, program_waits=0.3))
    machine.program = PROGRAM + 1
    check(placement, machine, keeper_waits=0.5, program_runs=0.5, program_waits=0.3)
    assert machine.moves == []
    check(placement, machine, keeper_waits=0.5, program_runs=0.5, program_waits=0.3)
    assert machine.moves != []


def test_moves_that_do_not_help_become_rare_until_one_helps(
    placement: CorePlacement, machine: SimulatedMachine
) -> None:
    pauses = [
        check(placement, machine, keeper_waits=0.5, program_runs=0.5, program_waits=0.3) for _ in range(100)
    ]
    assert pauses[0] < 0.01
    assert pauses[-1] == 1.0
    check(placement, machine, keeper_waits=0.5, program_runs=0.9, program_waits=0.0)
    assert check(placement, machine, keeper_waits=0.5, program_runs=0.5, program_waits=0.3) == pauses[0]


def test_a_program_that_has_ended_is_ignored(placement: CorePlacement, machine: SimulatedMachine) -> None:
    machine.end_program()
    assert check(placement, machine, keeper_waits=0.5, program_runs=0.5, program_waits=0.3) == 1.0
    assert machine.moves == []


@pytest.fixture
def busy_terminal() -> Iterator[int]:
    """Yield the descriptor of a terminal on which a program prints continuously."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execvp("yes", ["yes"])
    yield terminal
    os.close(terminal)
    os.waitpid(pid, 0)


def test_after_a_move_the_keeper_has_its_original_affinity(
    busy_terminal: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Use the real statistics of the kernel, with limits at which the keeper always moves."""
    before = os.sched_getaffinity(0)
    moves: list[set[int]] = []
    set_affinity = os.sched_setaffinity

    def record_move(pid: int, cores: set[int]) -> None:
        moves.append(cores)
        set_affinity(pid, cores)

    monkeypatch.setattr(os, "sched_setaffinity", record_move)
    for name, share in (("_PROGRAM_WAITS", -1.0), ("_PROGRAM_RUNS", 1e9), ("_MAX_AGE_SECONDS", 1e9)):
        monkeypatch.setattr(core_placement, name, share)
    monkeypatch.setattr(core_placement, "_runnable_tasks", lambda: 1)
    placement = CorePlacement()
    for now in range(1, 20):
        os.read(busy_terminal, 4096)
        assert placement.check(busy_terminal, float(now)) < 1.0
        assert os.sched_getaffinity(0) == before
    assert moves or len(before) == 1
