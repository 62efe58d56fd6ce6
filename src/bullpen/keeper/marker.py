"""The marker: a variable in a child's environment by which all that descends from it can be found."""

from __future__ import annotations

import os

MARKER = "BULLPEN_CHILD"


def marker(home_id: str, worker: str, run: int) -> str:
    return f"{home_id}/{worker}/{run}"


def find_marked(prefix: str) -> list[tuple[int, str, int]]:
    """(pid, worker, run) of each of our processes whose marker is `prefix` or lies below it."""
    wanted = prefix.rstrip("/") + "/"
    found = []
    for pid in map(int, filter(str.isdecimal, os.listdir("/proc"))):
        marked = _marker_of(pid)
        match marked.split("/"):
            case [_, worker, run] if run.isdecimal() and f"{marked}/".startswith(wanted):
                found.append((pid, worker, int(run)))
    return found


def _marker_of(pid: int) -> str:
    name = f"{MARKER}=".encode()
    try:
        if os.stat(f"/proc/{pid}").st_uid != os.getuid():
            return ""
        with open(f"/proc/{pid}/environ", "rb") as file:
            variables = file.read().split(b"\0")
    except (
        FileNotFoundError,
        ProcessLookupError,
        PermissionError,
    ):  # it has ended, or belongs to another user
        return ""
    return next((os.fsdecode(each.removeprefix(name)) for each in variables if each.startswith(name)), "")
