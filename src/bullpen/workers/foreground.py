"""Find the name of the program that runs in the foreground of a terminal."""

from pathlib import Path

from ..wire.proc import foreground_group, program_name

PROC = Path("/proc")
UNNAMED = "a program"  # the leader of the foreground group has ended, other programs of its pipeline run


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
