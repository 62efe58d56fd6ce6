"""Mark the processes of a git command, so that a later server finds and ends those of a killed server."""

import asyncio
import os
import signal
from contextlib import suppress

from .. import clock

GRACE_SECONDS = 2.0  # until marked processes are killed
KILL_TIMEOUT_SECONDS = 10.0  # until marked processes must be gone after that
POLL_SECONDS = 0.05
_MARKER = "BULLPEN_ERRAND"


def marker_variables(marker: str | None) -> dict[str, str]:
    """Return the environment variable by which a later server finds a process with this marker."""
    return {_MARKER: marker} if marker else {}


async def kill_marked(marker: str) -> None:
    """Wait until the marked processes that a killed server left running are gone; kill them after a while.

    No signal is sent at first: a git that ends by itself leaves no lock file behind. Raise TimeoutError if a
    process remains even after that.
    """
    started_at = clock.monotonic()
    while pids := await asyncio.to_thread(_find_marked, f"{_MARKER}={marker}".encode()):
        waited = clock.monotonic() - started_at
        for pid in pids if waited > GRACE_SECONDS else ():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if waited > GRACE_SECONDS + KILL_TIMEOUT_SECONDS:
            raise TimeoutError(f"the processes {pids} do not end")
        await asyncio.sleep(POLL_SECONDS)


def _find_marked(variable: bytes) -> list[int]:
    """Return the pids of the processes with this environment variable."""
    found = []
    for pid in filter(str.isdecimal, os.listdir("/proc")):
        with suppress(OSError), open(f"/proc/{pid}/environ", "rb") as file:  # another user's, or just ended
            if variable in file.read().split(b"\0"):
                found.append(int(pid))
    return found
