"""Work in the background: what fails does not take the rest along."""

import asyncio
import gc

import pytest
from structlog.testing import capture_logs

from bullpen.sessions.tasks import background_tasks, run_until_success


async def test_work_that_fails_is_begun_again_and_its_neighbours_go_on() -> None:
    begun, well = 0, asyncio.Event()

    async def work() -> None:
        nonlocal begun
        begun += 1
        if begun < 3:
            raise KeyError("a mistake")
        well.set()

    async with background_tasks() as tasks:
        neighbour = tasks.create_task(asyncio.Event().wait())
        tasks.create_task(run_until_success(work, "work", pause=0))
        async with asyncio.timeout(30):
            await well.wait()
        assert not neighbour.done()
    assert begun == 3
    assert neighbour.cancelled()


async def test_a_task_that_fails_is_told_and_the_house_goes_on() -> None:
    async def work() -> None:
        raise KeyError("a mistake")

    with capture_logs() as told:
        async with background_tasks() as tasks:
            neighbour = tasks.create_task(asyncio.Event().wait())
            failed = tasks.create_task(work(), name="the one that fails")
            await asyncio.wait([failed], timeout=30)
            assert not neighbour.done()
            assert tasks.create_task(asyncio.Event().wait())  # more are taken
    assert [(each["log_level"], each["task"], repr(each["exc_info"])) for each in told] == [
        ("error", "the one that fails", "KeyError('a mistake')")
    ]


async def test_what_ends_before_it_began_is_not_missed(recwarn: pytest.WarningsRecorder) -> None:
    begun = False

    async def work() -> None:
        nonlocal begun
        begun = True

    async with background_tasks() as tasks:
        tasks.create_task(work()).cancel()
    gc.collect()
    assert not begun
    assert [str(each.message) for each in recwarn] == []
