"""Kills a process at its persistence and send syscalls, or lets them fail, by strace.

strace counts for itself what each thread makes of each syscall. The Nth of a set is the first that comes to N
in any thread: of a set, the seldom ones never do. So a point of death is one syscall and its number.
"""

import asyncio
import os
import random
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import chain, zip_longest
from pathlib import Path
from tempfile import NamedTemporaryFile

from .server import Server

FULL = os.environ.get("BULLPEN_FAULTS") == "full"
SOME = 40  # points in a normal run
LONG = 40  # rounds are enough for one test, so that none takes minutes

Point = tuple[str, int]

FILES = "ftruncate,rename,renameat,renameat2,unlink,unlinkat"
CALLS = f"write,writev,pwrite64,pwritev,sendto,sendmsg,fsync,fdatasync,{FILES}"
DISK = "pwrite64,fsync,fdatasync,ftruncate"  # those of the database


@asynccontextmanager
async def killed_at(pid: int, number: int, calls: str = CALLS) -> AsyncIterator[None]:
    """SIGKILL instead of a syscall, where a thread first comes to this number of one of them, if any does."""
    async with _injected(pid, calls, f"signal=SIGKILL:when={number}"):
        yield


def share_points(made: Mapping[str, int], tests: int) -> list[list[Point]]:
    """The points of each test: some of those any round makes, or in full all there may be."""
    if not FULL:
        turns = zip_longest(*([(call, n) for n in _shuffled(most)] for call, most in made.items()))
        some = [point for point in chain.from_iterable(turns) if point][:SOME]
        return [some[test::tests] for test in range(tests)]
    steps = {call: 1 + made.get(call, 0) // LONG for call in CALLS.split(",")}
    return [
        [(call, n) for n in range(first, 1000, step)]
        for call, step in steps.items()
        for first in range(1, step + 1)
    ]


def _shuffled(most: int) -> list[int]:
    return random.sample(range(1, most + 1), most)


async def kill_at_each(
    server: Server,
    points: Sequence[Point],
    made: Mapping[str, int],
    one_round: Callable[[AsyncExitStack, int], Awaitable[int]],
) -> int:
    """A round for each point, in full until one is not reached; `one_round` returns the deaths it saw."""
    deaths = rounds = 0
    call = ""
    for rounds, (call, number) in enumerate(points, 1):
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(killed_at(server.pid, number, call))
            died = await one_round(stack, rounds)
        died += await _start_if_dead(server)
        deaths += died
        if FULL and not died:
            break  # a round makes no more of these: all were hit
    else:
        assert not FULL, f"there was no end of {call}"
    assert deaths or call not in made, "no kill hit: the test shows nothing"
    return rounds


async def _start_if_dead(server: Server) -> bool:
    """The kill may come after the last answer, when nobody looks any more."""
    try:
        await server.ready()
    except AssertionError:
        assert server.process is not None
        if server.process.returncode != -signal.SIGKILL:
            raise
        await server.start()
        return True
    return False


@asynccontextmanager
async def failing_at(
    pid: int, when: str, error: str, calls: str = DISK, *, children: bool = True
) -> AsyncIterator["Hits"]:
    """An error instead of the syscall: `3` the third time, `3+` from then on for as long as this lasts.

    Without `children` the fault is injected only into the thread `pid` itself.
    """
    with NamedTemporaryFile() as said:
        async with _injected(pid, calls, f"error={error}:when={when}", said.name, children=children):
            yield Hits(Path(said.name))


class Hits:
    """How many syscalls were made to fail."""

    def __init__(self, said: Path) -> None:
        self._said = said

    def count(self) -> int:
        return self._said.read_text().count("(INJECTED)")


@asynccontextmanager
async def _injected(
    pid: int, calls: str, fault: str, said: str = "/dev/null", *, children: bool = True
) -> AsyncIterator[None]:
    strace = await asyncio.create_subprocess_exec(
        "strace", *(("-f",) if children else ()), "-qq", "-o", said, "-p", str(pid),
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
