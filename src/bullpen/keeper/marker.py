"""Mark a child by a variable in its environment, and find all processes that inherited the mark."""

from __future__ import annotations

import os

MARKER = "BULLPEN_CHILD"


def marker(home_id: str, worker: str, run: int) -> str:
    """Return the value of the variable for the child of one run of a worker."""
    return f"{home_id}/{worker}/{run}"


def find_marked(prefix: str) -> list[tuple[int, str, int]]:
    """Return (pid, worker, run) of each process of this user whose marker is `prefix` or below it."""
    below = prefix.rstrip("/") + "/"
    found = []
    for pid in map(int, filter(str.isdecimal, os.listdir("/proc"))):
        value = _marker_of(pid)
        match value.split("/"):
            case [_, worker, run] if run.isdecimal() and f"{value}/".startswith(below):
                found.append((pid, worker, int(run)))
    return found


def _marker_of(pid: int) -> str:
    """Return the marker of a process, or an empty text."""
    name = f"{MARKER}=".encode()
    try:
        if os.stat(f"/proc/{pid}").st_uid != os.getuid():
            return ""
        with open(f"/proc/{pid}/environ", "rb") as file:
            variables = file.read().split(b"\0")
    except (FileNotFoundError, ProcessLookupError, PermissionError):  # it has ended, or is another user's
        return ""
    return next((os.fsdecode(each.removeprefix(name)) for each in variables if each.startswith(name)), "")
