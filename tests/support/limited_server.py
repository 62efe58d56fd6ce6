"""A server with small limits for sandboxed runs, and what its runs have left behind."""

import os
import shutil
import sys
from pathlib import Path

from bullpen.keeper.marker import find_marked
from bullpen.sandbox.cgroups import ControlGroups
from bullpen.workers.children import ChildHandles
from support.server import Server

OFFENDER = Path(__file__).with_name("offender.py")
MEMORY, PROCESSES, DISK = 256 << 20, 200, 64 << 20
LIMITS = {
    "BULLPEN_SANDBOX_MEMORY": str(MEMORY),
    "BULLPEN_SANDBOX_PROCESSES": str(PROCESSES),
    "BULLPEN_SANDBOX_DISK": str(DISK),
}
REASONS = {
    "memory": "ended: the session used more than 256 MiB of memory (sandbox_memory)",
    "processes": "ended: the session used more than 200 processes (sandbox_processes)",
    "disk": "ended: the session used more than 64 MiB of disk (sandbox_disk)",
}
# A server that sees no control groups, as on a machine that delegates none.
_UNSHARE, _UMOUNT = (shutil.which(name) or name for name in ("unshare", "umount"))
WITHOUT_GROUPS = (_UNSHARE, "--mount", "/bin/sh", "-c", f'{_UMOUNT} -R /sys/fs/cgroup && exec "$@"', "sh")
# The name is that of one process, because all processes of pytest make and remove a group to find out.
HAS_GROUPS = ControlGroups.find(f"bullpen-tests-{os.getpid()}") is not None


async def start_limited(server: Server, enforced_by: str) -> None:
    """Restart the server with small limits, enforced by control groups (`groups`) or by the server."""
    server.set(**LIMITS)
    await server.kill()
    await server.start(prefix=WITHOUT_GROUPS if enforced_by == "server" and HAS_GROUPS else ())
    found = {each["name"]: each for each in (await server.call("GET", "/api/sandbox"))["limits"]}
    assert {name: each["value"] for name, each in found.items()} == {
        "memory": MEMORY,
        "processes": PROCESSES,
        "disk": DISK,
    }
    by_groups = found["memory"]["enforcedBy"].startswith("cgroup")
    assert by_groups == (enforced_by == "groups" and HAS_GROUPS), found


async def offend(server: Server, session_id: str, what: str, role: str = "offender") -> str:
    """Start a sandboxed program in a session that uses too much of something; return the id of its worker."""
    command = [sys.executable, str(OFFENDER), what]
    body = {"type": "terminal", "command": command, "sandbox": "workspace", "role": role}
    worker = await server.call("POST", f"/api/sessions/{session_id}/workers", 201, json=body)
    return str(worker["id"])


def left_behind(server: Server, worker_id: str) -> list[object]:
    """Return the processes and the control groups of a worker."""
    home_id = ChildHandles(server.home).home_id
    processes = [pid for pid, worker, _ in find_marked(home_id) if worker == worker_id]
    groups = [  # os.walk skips a directory that is removed meanwhile
        os.path.join(parent, name)
        for parent, names, _ in os.walk("/sys/fs/cgroup")
        for name in names
        if name.startswith(f"{worker_id}.")
    ]
    return [*processes, *groups]
