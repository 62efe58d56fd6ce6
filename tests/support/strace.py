"""Use strace to kill a process at its writing, syncing or sending syscalls, or to make these fail.

strace counts each syscall of each thread separately. With a set of syscalls, the fault happens when any
thread reaches number N of any of them, so rare syscalls of the set are never hit. So a point is one syscall
and one number.
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
NORMAL_POINTS = 40  # in a normal run
MAX_ROUNDS = 40  # of one test in a full run, so that no test takes minutes

Point = tuple[str, int]

FILES = "ftruncate,rename,renameat,renameat2,unlink,unlinkat"
CALLS = f"write,writev,pwrite64,pwritev,sendto,sendmsg,fsync,fdatasync,{FILES}"
DATABASE_CALLS = "pwrite64,fsync,fdatasync,ftruncate"


@asynccontextmanager
async def killed_at(pid: int, number: int, calls: str = CALLS) -> AsyncIterator[None]:
    """Kill the process when a thread makes call number `number` of one of these syscalls."""
    async with _injected(pid, calls, f"signal=SIGKILL:when={number}"):
        yield


def share_points(made: Mapping[str, int], tests: int) -> list[list[Point]]:
    """Return the points of each test: a random selection, or in a full run all.

    `made` has the number of calls in a round without a kill, by syscall.
    """
    if not FULL:
        turns = zip_longest(*([(call, n) for n in _shuffled(most)] for call, most in made.items()))
        selected = [point for point in chain.from_iterable(turns) if point][:NORMAL_POINTS]
        return [selected[test::tests] for test in range(tests)]
    steps = {call: 1 + made.get(call, 0) // MAX_ROUNDS for call in CALLS.split(",")}
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
    """Run a round for each point, in a full run until a point is not reached; return the number of rounds.

    `one_round` returns how often the server died in it.
    """
    deaths = rounds = 0
    call = ""
    for rounds, (call, number) in enumerate(points, 1):
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(killed_at(server.pid, number, call))
            died = await one_round(stack, rounds)
        died += await _start_if_dead(server)
        deaths += died
        if FULL and not died:
            break  # a round makes fewer calls: all points were hit
    else:
        assert not FULL, f"every round reached its {call}: raise the highest number"
    assert deaths or call not in made, "no round killed the server"
    return rounds


async def _start_if_dead(server: Server) -> bool:
    """Start the server if a kill after the last answer ended it; return whether it did."""
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
    pid: int, when: str, error: str, calls: str = DATABASE_CALLS, *, children: bool = True
) -> AsyncIterator["InjectedFaults"]:
    """Make syscalls fail in the block: with `when="3"` the third call, with `"3+"` all from the third on.

    Without `children` only the thread `pid` is affected.
    """
    with NamedTemporaryFile() as output:
        async with _injected(pid, calls, f"error={error}:when={when}", output.name, children=children):
            yield InjectedFaults(Path(output.name))


class InjectedFaults:
    """The syscalls that strace made fail, read from its output."""

    def __init__(self, output: Path) -> None:
        self._output = output

    def count(self) -> int:
        return self._output.read_text().count("(INJECTED)")


@asynccontextmanager
async def _injected(
    pid: int, calls: str, fault: str, output: str = "/dev/null", *, children: bool = True
) -> AsyncIterator[None]:
    strace = await asyncio.create_subprocess_exec(
        "strace", *(("-f",) if children else ()), "-qq", "-o", output, "-p", str(pid),
        "-e", f"trace={calls}", "-e", f"inject={calls}:{fault}",
        stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    watching = asyncio.create_task(_end_after_process(pid, strace))
    try:
        await _wait_until_attached(pid, strace)
        yield
    finally:
        if strace.returncode is None:
            strace.terminate()
        await strace.communicate()
        watching.cancel()


async def _end_after_process(pid: int, strace: asyncio.subprocess.Process) -> None:
    """Kill strace if it does not notice that its process died: the parent cannot reap the process before."""
    checks_left = 20
    while strace.returncode is None and checks_left:
        checks_left -= _is_dead(pid)
        await asyncio.sleep(0.1)
    if strace.returncode is None:
        strace.kill()


def _is_dead(pid: int) -> bool:
    try:
        return "State:\tZ" in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return True


async def _wait_until_attached(pid: int, strace: asyncio.subprocess.Process) -> None:
    async with asyncio.timeout(60):
        while strace.returncode is None and not _is_traced_or_gone(pid):
            await asyncio.sleep(0.01)


def _is_traced_or_gone(pid: int) -> bool:
    try:
        return "TracerPid:\t0\n" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return True
