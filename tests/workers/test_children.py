"""Children are ended with all they left behind, and nobody waits meanwhile who has nothing to do with it."""

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
from bullpen.workers.children import ChildHandle, ChildHandles, ChildSpec
from support.server import end_processes_of, has_ended

SECONDS = 30.0
DEAF = "trap '' HUP TERM; echo deaf > said; exec sleep 1000"
LEAVES_ONE = "setsid sleep 1000 & echo $! > said; exec sleep 1000"  # which no signal to its group reaches

_lookers: list[list[threading.Thread]] = []  # one list for everybody who wants to know


def _note(event: str, arguments: tuple[object, ...]) -> None:
    if event == "os.listdir" and arguments[0] == "/proc":
        for each in _lookers:
            each.append(threading.current_thread())


sys.addaudithook(_note)


@contextmanager
def looking() -> Iterator[list[threading.Thread]]:
    """The threads that look through all processes."""
    found: list[threading.Thread] = []
    _lookers.append(found)
    try:
        yield found
    finally:
        _lookers.remove(found)


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
    """A child, and what it said when it was ready."""
    place = workspace / worker_id
    place.mkdir()
    environment = {"PATH": os.environ["PATH"], MARKER: children.marker(worker_id, 1)}
    start = ChildSpec(["/bin/sh", "-c", program], environment, str(place))
    child = await children.spawn(worker_id, 1, start, Recording(children.spool(worker_id, 1)))
    said = place / "said"
    async with asyncio.timeout(SECONDS):
        while not (said.exists() and said.read_text().strip()):
            await asyncio.sleep(0.01)
    return child, said.read_text()


async def begin(children: ChildHandles, workspace: Path, worker_id: str) -> tuple[ChildHandle, int]:
    """A child, and what it left behind in a session of its own."""
    child, left = await spawn(children, workspace, worker_id, LEAVES_ONE)
    return child, int(left)


async def test_what_a_child_left_behind_is_looked_for_beside_the_loop(
    children: ChildHandles, workspace: Path
) -> None:
    child, left = await begin(children, workspace, "w")
    with looking() as lookers:
        await child.stop()
    assert has_ended(child.pid) and has_ended(left)
    assert lookers
    assert threading.main_thread() not in lookers


async def test_who_ends_a_child_leaves_when_told_to_even_in_the_moment_it_ends(
    children: ChildHandles, workspace: Path
) -> None:
    """`asyncio.wait_for` of Python 3.11 takes no notice then: a server that is stopped would go on ending."""
    child, _ = await spawn(children, workspace, "w", DEAF)
    ending = asyncio.create_task(child.stop(SECONDS))
    child.ended.add_done_callback(lambda _: ending.cancel())
    await asyncio.sleep(0.2)
    assert not child.ended.done()
    os.kill(child.pid, signal.SIGKILL)
    with pytest.raises(asyncio.CancelledError):
        await ending


async def test_what_a_dead_keeper_left_is_ended_before_its_children_count_as_ended(
    children: ChildHandles, workspace: Path
) -> None:
    begun = [await begin(children, workspace, f"w{number}") for number in range(3)]
    keeper = psutil.Process(begun[0][0].pid).parent()
    assert keeper is not None
    with looking() as lookers:
        os.kill(keeper.pid, signal.SIGKILL)
        async with asyncio.timeout(SECONDS):
            ends = await asyncio.gather(*(child.ended for child, _ in begun))
    assert all(end.lost for end in ends)
    async with asyncio.timeout(SECONDS):  # a signal that was sent may take a moment
        while not all(has_ended(child.pid) and has_ended(left) for child, left in begun):
            await asyncio.sleep(0.01)
    assert threading.main_thread() not in lookers
    assert len(lookers) <= 3, "all are found in one look, however many they are"
