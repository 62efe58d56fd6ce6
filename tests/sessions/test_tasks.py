"""Work in the background: what fails does not take the rest along."""

import asyncio

from bullpen.sessions.tasks import background, keep_going


async def test_work_that_fails_is_begun_again_and_its_neighbours_go_on() -> None:
    begun, well = 0, asyncio.Event()

    async def work() -> None:
        nonlocal begun
        begun += 1
        if begun < 3:
            raise KeyError("a mistake")
        well.set()

    async with background() as tasks:
        neighbour = tasks.create_task(asyncio.Event().wait())
        tasks.create_task(keep_going(work, "work", pause=0))
        async with asyncio.timeout(30):
            await well.wait()
        assert not neighbour.done()
    assert begun == 3
    assert neighbour.cancelled()
