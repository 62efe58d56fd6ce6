"""Screens are used by one thread at a time, also when who asked for one has left."""

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


class SlowDisk(Recording):
    """A recording that is read when the test lets it; counts its readers."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.begun = threading.Event()
        self.go_on = threading.Event()
        self.most_readers = 0
        self._readers = 0

    def read(self, offset: int, limit: int) -> bytes:
        self._readers += 1
        self.most_readers = max(self.most_readers, self._readers)
        self.begun.set()
        assert self.go_on.wait(SECONDS)
        self._readers -= 1
        return super().read(offset, limit)


def spool(path: Path, said: bytes) -> Path:
    path.mkdir()
    writer = SpoolWriter(os.open(path, os.O_RDONLY), size=(80, 24))
    writer.append(said)
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
def recording(tmp_path: Path) -> SlowDisk:
    return SlowDisk(spool(tmp_path / "spool", b"hello"))


async def test_who_leaves_goes_at_once_and_the_next_waits_for_the_thread(
    tmp_path: Path, recording: SlowDisk
) -> None:
    worker = run_of(1)
    async with (
        asyncio.timeout(SECONDS),
        Screens.open(tmp_path / "screens") as screens,
        asyncio.TaskGroup() as tasks,
    ):
        leaving = tasks.create_task(screens.history(worker, recording))
        await asyncio.to_thread(recording.begun.wait, SECONDS)
        leaving.cancel()
        await asyncio.wait([leaving])  # although the thread still reads
        staying = tasks.create_task(screens.history(worker, recording))
        done, _ = await asyncio.wait([staying], timeout=0.1)
        assert not done
        recording.go_on.set()
        assert b"hello" in (await staying).data
    assert recording.most_readers == 1


FEW = 3  # the two that are kept; a thread may still hold the one it was last given


async def test_of_runs_that_ended_only_a_few_stay_in_memory(
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
        assert screens_in_memory() - before <= FEW
        for worker, recording in runs:
            assert f"run {worker.run}".encode() in (await screens.history(worker, recording)).data
        assert screens_in_memory() - before <= FEW


async def test_a_run_that_lives_is_answered_once_however_long_its_screen_rested(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(screens_module, "MAX_LOADED", 1)
    asking, worker = Recording(spool(tmp_path / "asking", b"\x1b[6n")), run_of(1)
    other = Recording(spool(tmp_path / "other", b"hello"))
    async with asyncio.timeout(SECONDS), Screens.open(tmp_path / "screens") as screens:
        screens.start_run(worker, asking, 0)
        assert [reply.n for reply in await screens.advance(worker, asking, asking.end, 0)] == [1]
        await screens.view(run_of(2), other)  # whose screen takes the place of the other
        assert await screens.advance(worker, asking, asking.end, 0) == []
        screens.end_run(worker)
