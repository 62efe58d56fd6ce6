"""A screen is used by one thread at a time, also when a caller was cancelled."""

import asyncio
import gc
import os
import threading
from pathlib import Path

import pytest

from bullpen.domain.snapshot import Worker
from bullpen.keeper.spool import SpoolWriter
from bullpen.log.recording import Recording
from bullpen.workers import screens as screens_module
from bullpen.workers.screen import Screen
from bullpen.workers.screens import Screens

SECONDS = 30.0


class SlowRecording(Recording):
    """A recording that blocks its readers until the test continues, and counts them."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.started = threading.Event()
        self.may_continue = threading.Event()
        self.most_readers = 0
        self._readers = 0

    def read(self, offset: int, limit: int) -> bytes:
        self._readers += 1
        self.most_readers = max(self.most_readers, self._readers)
        self.started.set()
        assert self.may_continue.wait(SECONDS)
        self._readers -= 1
        return super().read(offset, limit)


def spool(path: Path, output: bytes) -> Path:
    path.mkdir()
    writer = SpoolWriter(os.open(path, os.O_RDONLY), size=(80, 24))
    writer.append(output)
    writer.close()
    return path


def run_of(number: int) -> Worker:
    return Worker(
        id="w", type="terminal", name="t", role="t", workspace="/", created_at=0, last_active_at=0, run=number
    )


def screens_in_memory() -> int:
    gc.collect()
    return sum(isinstance(each, Screen) for each in gc.get_objects())


@pytest.fixture
def recording(tmp_path: Path) -> SlowRecording:
    return SlowRecording(spool(tmp_path / "spool", b"hello"))


async def test_a_cancelled_caller_returns_immediately_and_the_next_one_waits_for_the_thread(
    tmp_path: Path, recording: SlowRecording
) -> None:
    worker = run_of(1)
    async with (
        asyncio.timeout(SECONDS),
        Screens.open(tmp_path / "screens") as screens,
        asyncio.TaskGroup() as tasks,
    ):
        leaving = tasks.create_task(screens.history(worker, recording))
        await asyncio.to_thread(recording.started.wait, SECONDS)
        leaving.cancel()
        await asyncio.wait([leaving])  # the thread still reads
        staying = tasks.create_task(screens.history(worker, recording))
        done, _ = await asyncio.wait([staying], timeout=0.1)
        assert not done
        recording.may_continue.set()
        assert b"hello" in (await staying).data
    assert recording.most_readers == 1


MAX_IN_MEMORY = 3  # the two that stay loaded; a thread may still hold a reference to a third one


async def test_only_a_few_screens_of_ended_runs_stay_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(screens_module, "MAX_LOADED", 2)
    runs = [
        (run_of(number), Recording(spool(tmp_path / str(number), f"run {number}".encode())))
        for number in range(1, 9)
    ]
    async with asyncio.timeout(SECONDS), Screens.open(tmp_path / "screens") as screens:
        before = screens_in_memory()
        for worker, recording in runs:
            screens.start_run(worker, recording, 0)
            assert f"run {worker.run}" in (await screens.view(worker, recording)).text
            screens.end_run(worker)
        assert screens_in_memory() - before <= MAX_IN_MEMORY
        for worker, recording in runs:
            assert f"run {worker.run}".encode() in (await screens.history(worker, recording)).data
        assert screens_in_memory() - before <= MAX_IN_MEMORY


async def test_queries_of_a_run_are_answered_once_although_its_screen_was_unloaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(screens_module, "MAX_LOADED", 1)
    querying, worker = Recording(spool(tmp_path / "querying", b"\x1b[6n")), run_of(1)
    other = Recording(spool(tmp_path / "other", b"hello"))
    async with asyncio.timeout(SECONDS), Screens.open(tmp_path / "screens") as screens:
        screens.start_run(worker, querying, 0)
        assert [reply.n for reply in await screens.advance(worker, querying, querying.end, 0)] == [1]
        await screens.view(run_of(2), other)  # this loads another screen and unloads the first
        assert await screens.advance(worker, querying, querying.end, 0) == []
        screens.end_run(worker)
