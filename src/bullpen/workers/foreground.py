"""Find the names of the programs that run in the foreground of terminals."""

from pathlib import Path

from ..domain.snapshot import Snapshot
from ..domain.states import WorkerState
from ..wire.proc import foreground_group, program_name

PROC = Path("/proc")
UNNAMED = "a program"  # the leader of the foreground group has ended, other programs of its pipeline run


def foreground_programs(snapshot: Snapshot) -> dict[str, str]:
    """Return the programs in the foreground of a session's terminals by worker, without the shells.

    A command of an agent is not among them: whether it counts as work is for the agent to say.
    """
    found = {}
    for worker in snapshot.workers.values():
        if worker.type == "terminal" and worker.state is WorkerState.ACTIVE and worker.pid:
            is_shell = worker.command is None or worker.command.owner is not None
            if name := foreground_program(worker.pid, first_is_shell=is_shell):
                found[worker.id] = name
    return found


def foreground_program(pid: int, *, first_is_shell: bool) -> str | None:
    """Return the program in the foreground of a terminal; None for its shell. `pid` is its first program."""
    try:
        group = foreground_group((PROC / str(pid) / "stat").read_text(errors="replace"))
    except OSError:
        return None  # the program has ended
    if group is None or (first_is_shell and group == pid):
        return None
    leader = PROC / str(group)
    try:
        return program_name((leader / "cmdline").read_bytes(), (leader / "comm").read_bytes())
    except OSError:
        return UNNAMED
