"""A background task that runs during a block of code."""

import asyncio

import pytest

from bullpen.client.tasks import background_task


async def test_the_task_is_cancelled_at_the_end_of_the_block() -> None:
    ended = asyncio.Event()

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async with asyncio.timeout(30), background_task(work()):
        await asyncio.sleep(0)
    assert ended.is_set()


async def test_an_error_of_the_block_is_raised_unchanged() -> None:
    with pytest.raises(ValueError, match="mine"):
        async with background_task(asyncio.sleep(60)):
            raise ValueError("mine")


async def test_an_error_of_the_task_cancels_the_block_and_is_raised_unchanged() -> None:
    async def work() -> None:
        raise KeyError("its")

    with pytest.raises(KeyError, match="its"):
        async with asyncio.timeout(30), background_task(work()):
            await asyncio.Event().wait()


async def test_a_cancellation_is_passed_on() -> None:
    async def waiting() -> None:
        async with background_task(asyncio.sleep(60)):
            await asyncio.Event().wait()

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await waiting()
