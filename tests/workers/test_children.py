"""A child is ended with every process it started, and the event loop is not blocked meanwhile."""

import asyncio
import os
import signal
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from bullpen.keeper.marker import MARKER
from bullpen.log.recording import Recording
from bullpen.sandbox.profile import OPEN
from bullpen.workers.children import ChildHandle, ChildHandles, ChildSpec
from support.server import end_processes_of, has_ended

SECONDS = 30.0
IGNORES_SIGNALS = "trap '' HUP TERM; echo ready > output; exec sleep 1000"
# Starts a process in a session of its own, which no signal to the process group reaches.
STARTS_ORPHAN = "setsid sleep 1000 & echo $! > output; exec sleep 1000"

_recorders: list[list[threading.Thread]] = []  # one list for each active `record_proc_scans`


def _record_scan(event: str, arguments: tuple[object, ...]) -> None:
    if event == "os.listdir" and arguments[0] == "/proc":
        for threads in _recorders:
            threads.append(threading.current_thread())


sys.addaudithook(_record_scan)


@contextmanager
def record_proc_scans() -> Iterator[list[threading.Thread]]:
    """Record the thread of each scan of all processes in `/proc`."""
    threads: list[threading.Thread] = []
    _recorders.append(threads)
    try:
        yield threads
    finally:
        _recorders.remove(threads)


@pytest.fixture
async def children(tmp_path: Path) -> AsyncIterator[ChildHandles]:
    home = tmp_path / "home"
    home.mkdir()
    async with ChildHandles.open(home) as children:
        yield children
    end_processes_of(home)


async def spawn(
    children: ChildHandles, workspace: Path, worker_id: str, program: str
) -> tuple[ChildHandle, str]:
    """Start a child, wait until it is ready, and return it with its output."""
    directory = workspace / worker_id
    directory.mkdir()
    environment = {"PATH": os.environ["PATH"], MARKER: children.marker(worker_id, 1)}
    start = ChildSpec(["/bin/sh", "-c", program], environment, str(directory), OPEN)
    child = await children.spawn(worker_id, 1, start, Recording(children.spool(worker_id, 1)))
    output = directory / "output"
    async with asyncio.timeout(SECONDS):
        while not (output.exists() and output.read_text().strip()):
            await asyncio.sleep(0.01)
    return child, output.read_text()


async def spawn_with_orphan(
    children: ChildHandles, workspace: Path, worker_id: str
) -> tuple[ChildHandle, int]:
    """Start a child with a process in a session of its own. Return the child and the pid of that process."""
    child, pid = await spawn(children, workspace, worker_id, STARTS_ORPHAN)
    return child, int(pid)


async def test_processes_of_a_child_are_searched_outside_the_event_loop_thread(
    children: ChildHandles, workspace: Path
) -> None:
    child, orphan = await spawn_with_orphan(children, workspace, "w")
    with record_proc_scans() as scanning_threads:
        await child.stop()
    async with asyncio.timeout(SECONDS):  # a killed process loses its variables before it ends
        while not (has_ended(child.pid) and has_ended(orphan)):
            await asyncio.sleep(0.01)
    assert scanning_threads
    assert threading.main_thread() not in scanning_threads


async def test_a_stop_that_is_cancelled_at_the_moment_the_child_ends_is_cancelled(
    children: ChildHandles, workspace: Path
) -> None:
    """`asyncio.wait_for` of Python 3.11 ignores such a cancellation, and the server would not stop."""
    child, _ = await spawn(children, workspace, "w", IGNORES_SIGNALS)
    stopping = asyncio.create_task(child.stop(SECONDS))
    child.ended.add_done_callback(lambda _: stopping.cancel())
    await asyncio.sleep(0.2)
    assert not child.ended.done()
    os.kill(child.pid, signal.SIGKILL)
    with pytest.raises(asyncio.CancelledError):
        await stopping


async def test_processes_of_a_dead_keeper_are_ended_before_its_children_count_as_ended(
    children: ChildHandles, workspace: Path
) -> None:
    started = [await spawn_with_orphan(children, workspace, f"w{number}") for number in range(3)]
    keeper = psutil.Process(started[0][0].pid).parent()
    assert keeper is not None
    with record_proc_scans() as scanning_threads:
        os.kill(keeper.pid, signal.SIGKILL)
        async with asyncio.timeout(SECONDS):
            ends = await asyncio.gather(*(child.ended for child, _ in started))
    assert all(end.lost for end in ends)
    async with asyncio.timeout(SECONDS):  # the process ends shortly after the signal
        while not all(has_ended(child.pid) and has_ended(orphan) for child, orphan in started):
            await asyncio.sleep(0.01)
    assert threading.main_thread() not in scanning_threads
    assert len(scanning_threads) <= 3, "the processes of many children are found in one scan"
