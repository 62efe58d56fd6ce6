"""Screens are used by one thread at a time, also when who asked for one has left."""

import asyncio
import os
import threading
from pathlib import Path

import pytest

from bullpen.domain.snapshot import Worker
from bullpen.keeper.spool import SpoolWriter
from bullpen.log.recording import Recording
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


@pytest.fixture
def recording(tmp_path: Path) -> SlowDisk:
    path = tmp_path / "spool"
    path.mkdir()
    writer = SpoolWriter(os.open(path, os.O_RDONLY), size=(80, 24))
    writer.append(b"hello")
    writer.close()
    return SlowDisk(path)


async def test_who_leaves_goes_at_once_and_the_next_waits_for_the_thread(
    tmp_path: Path, recording: SlowDisk
) -> None:
    worker = Worker(
        id="w", type="terminal", name="t", role="t", workspace="/", created_at=0, last_active_at=0
    )
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
