"""Kills a process at the Nth of its persistence and send syscalls, with strace's fault injection."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

CALLS = "write,writev,pwrite64,pwritev,sendto,sendmsg,fsync,fdatasync,ftruncate,rename,renameat2,unlink"


@asynccontextmanager
async def killed_at(pid: int, number: int, calls: str = CALLS) -> AsyncIterator[None]:
    """SIGKILL instead of the syscall's return, at the given number, if the process comes that far."""
    strace = await asyncio.create_subprocess_exec(
        "strace", "-f", "-qq", "-o", "/dev/null", "-p", str(pid),
        "-e", f"trace={calls}", "-e", f"inject={calls}:signal=SIGKILL:when={number}",
        stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    watching = asyncio.create_task(_let_go_of_the_dead(pid, strace))
    try:
        await _attached(pid, strace)
        yield
    finally:
        if strace.returncode is None:
            strace.terminate()
        await strace.communicate()
        watching.cancel()


async def _let_go_of_the_dead(pid: int, strace: asyncio.subprocess.Process) -> None:
    """Ends a strace that does not see that its process has died: nobody else could wait for it then."""
    patience = 20
    while strace.returncode is None and patience:
        patience -= _is_dead(pid)
        await asyncio.sleep(0.1)
    if strace.returncode is None:
        strace.kill()


def _is_dead(pid: int) -> bool:
    try:
        return "State:\tZ" in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return True


async def _attached(pid: int, strace: asyncio.subprocess.Process) -> None:
    status = Path(f"/proc/{pid}/status")
    async with asyncio.timeout(10):
        while status.exists() and strace.returncode is None:
            if "TracerPid:\t0\n" not in status.read_text():
                return
            await asyncio.sleep(0.01)
