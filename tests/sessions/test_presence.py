"""The last row of the table of deaths: what becomes of a `terminate` session that nobody looks at (R-05)."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from bullpen import clock
from bullpen.domain.snapshot import Snapshot
from bullpen.domain.states import SessionStatus
from bullpen.sessions.presence import AttentiveViewers, ViewerPresence
from bullpen.sessions.session import Session
from bullpen.sessions.tasks import BackgroundTasks
from support.server_without_web import ServerWithoutWeb, until

SHORT = 0.05  # seconds


class Timers:
    """What a presence asks its loop to do later: noted, and done soon."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.delays: list[float] = []
        loop = asyncio.get_running_loop()
        self._call_later = loop.call_later
        monkeypatch.setattr(loop, "call_later", self.call_later)

    def call_later(
        self, delay: float, callback: Callable[..., None], *of: object, **more: Any
    ) -> asyncio.TimerHandle:
        if isinstance(getattr(callback, "__self__", None), ViewerPresence):
            self.delays.append(delay)
            delay = SHORT
        return self._call_later(delay, callback, *of, **more)


@pytest.fixture
async def timers(monkeypatch: pytest.MonkeyPatch) -> Timers:
    return Timers(monkeypatch)


@pytest.fixture
async def viewers(house: ServerWithoutWeb) -> AsyncIterator[ViewerPresence]:
    async with BackgroundTasks() as tasks:
        yield ViewerPresence(tasks)


@pytest.fixture
async def session(house: ServerWithoutWeb) -> Session:
    return await house.session(on_last_disconnect="terminate")


def is_over(snapshot: Snapshot) -> bool:
    return snapshot.status is SessionStatus.COMPLETED


async def test_last_viewer_of_a_terminate_session(
    viewers: ViewerPresence, session: Session, timers: Timers, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = clock.monotonic()
    monkeypatch.setattr(clock, "monotonic", lambda: started + 3600)
    with viewers.viewing(session):
        with viewers.viewing(session):
            pass
        assert timers.delays == []  # one is still there
    assert timers.delays == [10.0]
    await until(session, is_over)


async def test_right_after_a_start_viewers_have_a_minute_to_come_back(
    viewers: ViewerPresence, session: Session, timers: Timers
) -> None:
    viewers.schedule_end(session)
    assert 50 < timers.delays[0] <= 60
    with viewers.viewing(session):  # and one does
        await asyncio.sleep(3 * SHORT)
        assert not is_over(session.snapshot)
    await until(session, is_over)


async def test_one_who_says_goodbye_means_it(
    viewers: ViewerPresence, session: Session, timers: Timers
) -> None:
    viewers.schedule_early_end(session)
    assert timers.delays == [5.0]
    await until(session, is_over)


async def test_a_session_that_is_kept_is_kept(
    viewers: ViewerPresence, house: ServerWithoutWeb, timers: Timers
) -> None:
    kept = await house.session()
    with viewers.viewing(kept):
        pass
    viewers.schedule_early_end(kept)
    await asyncio.sleep(3 * SHORT)
    assert not is_over(kept.snapshot)


async def test_a_viewer_who_does_not_look_is_a_viewer_all_the_same(
    viewers: ViewerPresence, session: Session, timers: Timers
) -> None:
    with viewers.viewing(session), viewers.attentive.track(session.id) as look:
        look(True)
        look(False)  # the tab is hidden
        assert timers.delays == []
    assert len(timers.delays) == 1
    await until(session, is_over)


def test_a_session_is_looked_at_as_long_as_one_says_so() -> None:
    attentive = AttentiveViewers()
    with attentive.track("s") as look:
        assert not attentive.any_at("s")  # connected, no more
        look(True)
        look(True)
        with attentive.track("s") as other:
            other(True)
            look(False)
            look(False)
            assert attentive.any_at("s") and not attentive.any_at("another")
        assert not attentive.any_at("s")
        look(True)
    assert not attentive.any_at("s")
