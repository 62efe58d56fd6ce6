"""A change of the activity of a terminal agent is reported also when the agent writes nothing."""

import asyncio
import os
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest
from msgspec.structs import replace

from bullpen.domain.conversation_state import Turn
from bullpen.domain.screen_patterns import JudgedActivity, ScreenPatterns
from bullpen.domain.snapshot import Worker
from bullpen.domain.states import Activity
from bullpen.keeper.spool import SpoolWriter
from bullpen.log.recording import Recording
from bullpen.workers.pty_watch import ActivityWatch
from bullpen.workers.screens import Screens
from support.intervals import shortened

SECONDS = 30.0
IDLE_SECONDS = 0.2  # without a check, after which the watch waits for an event


class WatchedAgent:
    """A terminal agent whose output the test writes, and the activity that its watch reports."""

    def __init__(self, screens: Screens, path: Path) -> None:
        path.mkdir()
        self._spool = SpoolWriter(os.open(path, os.O_RDONLY), size=(80, 24))
        self._recording = Recording(path)
        self._worker = Worker(
            id="w", type="agent", name="a", role="a", workspace="/", created_at=0, last_active_at=0
        )
        self._checked = asyncio.Event()
        self._reported = asyncio.Condition()
        view = partial(screens.view, self._worker, self._recording)
        self.watch = ActivityWatch(
            view, self._recording, ScreenPatterns(silence=0.1), self._state, self._report
        )

    def write(self, data: bytes) -> None:
        self._spool.append(data)
        self._recording.grow(self._spool.end)

    async def wait_for_activity(self, activity: Activity) -> None:
        async with asyncio.timeout(SECONDS), self._reported:
            await self._reported.wait_for(lambda: self._worker.activity is activity)

    async def wait_until_checks_stop(self) -> None:
        try:
            while True:
                self._checked.clear()
                await asyncio.wait_for(self._checked.wait(), IDLE_SECONDS)
        except TimeoutError:
            return

    def _state(self) -> tuple[Worker, Turn | None]:
        self._checked.set()
        return self._worker, None

    async def _report(self, verdict: JudgedActivity, _turn: Turn | None) -> None:
        async with self._reported:
            self._worker = replace(self._worker, activity=verdict.activity)
            self._reported.notify_all()


@pytest.fixture
async def watched(tmp_path: Path) -> AsyncIterator[WatchedAgent]:
    with shortened(screen_check=0.01):
        async with Screens.open(tmp_path / "screens") as screens:
            watched = WatchedAgent(screens, tmp_path / "spool")
            task = asyncio.ensure_future(watched.watch.run())
            yield watched
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def test_input_after_a_bell_is_noticed_although_the_agent_writes_nothing(watched: WatchedAgent) -> None:
    await watched.wait_for_activity(Activity.IDLE)
    watched.write(b"\x07")
    await watched.wait_for_activity(Activity.ASKING)
    await watched.wait_until_checks_stop()
    watched.watch.note_input(b"y")
    await watched.wait_for_activity(Activity.IDLE)
