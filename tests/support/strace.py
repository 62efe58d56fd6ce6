"""Kills a process at the Nth of its persistence and send syscalls, or lets them fail, by strace."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import NamedTemporaryFile

CALLS = "write,writev,pwrite64,pwritev,sendto,sendmsg,fsync,fdatasync,ftruncate,rename,renameat2,unlink"
DISK = "pwrite64,fsync,fdatasync,ftruncate"  # those of the database


@asynccontextmanager
async def killed_at(pid: int, number: int, calls: str = CALLS) -> AsyncIterator[None]:
    """SIGKILL instead of the syscall's return, at the given number, if the process comes that far."""
    async with _injected(pid, calls, f"signal=SIGKILL:when={number}"):
        yield


@asynccontextmanager
async def failing_at(pid: int, when: str, error: str, calls: str = DISK) -> AsyncIterator["Hits"]:
    """An error instead of the syscall: `3` the third time, `3+` from then on for as long as this lasts."""
    with NamedTemporaryFile() as said:
        async with _injected(pid, calls, f"error={error}:when={when}", said.name):
            yield Hits(Path(said.name))


class Hits:
    """How many syscalls were made to fail."""

    def __init__(self, said: Path) -> None:
        self._said = said

    def count(self) -> int:
        return self._said.read_text().count("(INJECTED)")


@asynccontextmanager
async def _injected(pid: int, calls: str, fault: str, said: str = "/dev/null") -> AsyncIterator[None]:
    strace = await asyncio.create_subprocess_exec(
        "strace", "-f", "-qq", "-o", said, "-p", str(pid),
        "-e", f"trace={calls}", "-e", f"inject={calls}:{fault}",
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
    async with asyncio.timeout(60):
        while strace.returncode is None and not _is_traced_or_gone(pid):
            await asyncio.sleep(0.01)


def _is_traced_or_gone(pid: int) -> bool:
    try:
        return "TracerPid:\t0\n" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return True
