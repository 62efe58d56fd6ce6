"""What an agent in a terminal does is told also when it writes nothing more."""

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
from bullpen.workers import pty_watch
from bullpen.workers.pty_watch import ActivityWatch
from bullpen.workers.screens import Screens

SECONDS = 30.0
BELL_SILENCE_SECONDS = 0.2  # seconds without a look, after which it waits for something to happen


class Scene:
    """A program that has been silent, whoever watches it, and what they tell."""

    def __init__(self, screens: Screens, path: Path) -> None:
        path.mkdir()
        self._spool = SpoolWriter(os.open(path, os.O_RDONLY), size=(80, 24))
        self._recording = Recording(path)
        self._worker = Worker(
            id="w", type="agent", name="a", role="a", workspace="/", created_at=0, last_active_at=0
        )
        self._looked = asyncio.Event()
        self._told = asyncio.Condition()
        see = partial(screens.view, self._worker, self._recording)
        self.watch = ActivityWatch(see, self._recording, ScreenPatterns(silence=0.1), self._state, self._tell)

    def says(self, data: bytes) -> None:
        self._spool.append(data)
        self._recording.grow(self._spool.end)

    async def until(self, activity: Activity) -> None:
        async with asyncio.timeout(SECONDS), self._told:
            await self._told.wait_for(lambda: self._worker.activity is activity)

    async def until_it_looks_no_more(self) -> None:
        try:
            while True:
                self._looked.clear()
                await asyncio.wait_for(self._looked.wait(), BELL_SILENCE_SECONDS)
        except TimeoutError:
            return

    def _state(self) -> tuple[Worker, Turn | None]:
        self._looked.set()
        return self._worker, None

    async def _tell(self, verdict: JudgedActivity, _turn: Turn | None) -> None:
        async with self._told:
            self._worker = replace(self._worker, activity=verdict.activity)
            self._told.notify_all()


@pytest.fixture
async def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Scene]:
    monkeypatch.setattr(pty_watch, "CHECK_INTERVAL", 0.01)
    async with Screens.open(tmp_path / "screens") as screens:
        scene = Scene(screens, tmp_path / "spool")
        watching = asyncio.ensure_future(scene.watch.run())
        yield scene
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)


async def test_who_answers_a_call_after_a_while_is_seen_though_nothing_is_written(scene: Scene) -> None:
    await scene.until(Activity.IDLE)
    scene.says(b"\x07")
    await scene.until(Activity.ASKING)
    await scene.until_it_looks_no_more()
    scene.watch.note_input(b"y")
    await scene.until(Activity.IDLE)
