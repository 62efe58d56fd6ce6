"""Background tasks: a task that fails does not end the others."""

import asyncio
import gc

import pytest
from structlog.testing import capture_logs

from bullpen.sessions.tasks import background_tasks, run_until_success


async def test_a_job_that_fails_is_started_again_and_other_tasks_keep_running() -> None:
    starts, succeeded = 0, asyncio.Event()

    async def work() -> None:
        nonlocal starts
        starts += 1
        if starts < 3:
            raise KeyError("a mistake")
        succeeded.set()

    async with background_tasks() as tasks:
        other = tasks.create_task(asyncio.Event().wait())
        tasks.create_task(run_until_success(work, "work", pause=0))
        async with asyncio.timeout(30):
            await succeeded.wait()
        assert not other.done()
    assert starts == 3
    assert other.cancelled()


async def test_a_task_that_fails_is_logged_and_other_tasks_keep_running() -> None:
    async def work() -> None:
        raise KeyError("a mistake")

    with capture_logs() as log_entries:
        async with background_tasks() as tasks:
            other = tasks.create_task(asyncio.Event().wait())
            failed = tasks.create_task(work(), name="failing task")
            await asyncio.wait([failed], timeout=30)
            assert not other.done()
            assert tasks.create_task(asyncio.Event().wait())  # new tasks are still accepted
    assert [(each["log_level"], each["task"], repr(each["exc_info"])) for each in log_entries] == [
        ("error", "failing task", "KeyError('a mistake')")
    ]


async def test_a_task_that_is_cancelled_before_its_start_causes_no_warning(
    recwarn: pytest.WarningsRecorder,
) -> None:
    started = False

    async def work() -> None:
        nonlocal started
        started = True

    async with background_tasks() as tasks:
        tasks.create_task(work()).cancel()
    gc.collect()
    assert not started
    assert [str(each.message) for each in recwarn] == []
