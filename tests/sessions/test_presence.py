"""A session with `on_last_disconnect="terminate"` ends some time after its last viewer has left."""

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

SHORT_SECONDS = 0.05


class RecordedTimers:
    """Record the delays of the timers of ViewerPresence, and shorten them to SHORT_SECONDS."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.delays: list[float] = []
        loop = asyncio.get_running_loop()
        self._call_later = loop.call_later
        monkeypatch.setattr(loop, "call_later", self.call_later)

    def call_later(
        self, delay: float, callback: Callable[..., None], *args: object, **more: Any
    ) -> asyncio.TimerHandle:
        if isinstance(getattr(callback, "__self__", None), ViewerPresence):
            self.delays.append(delay)
            delay = SHORT_SECONDS
        return self._call_later(delay, callback, *args, **more)


@pytest.fixture
async def timers(monkeypatch: pytest.MonkeyPatch) -> RecordedTimers:
    return RecordedTimers(monkeypatch)


@pytest.fixture
async def viewers(local_server: ServerWithoutWeb) -> AsyncIterator[ViewerPresence]:
    async with BackgroundTasks() as tasks:
        yield ViewerPresence(tasks)


@pytest.fixture
async def session(local_server: ServerWithoutWeb) -> Session:
    return await local_server.session(on_last_disconnect="terminate")


def is_over(snapshot: Snapshot) -> bool:
    return snapshot.status is SessionStatus.COMPLETED


async def test_a_terminate_session_ends_ten_seconds_after_its_last_viewer_left(
    viewers: ViewerPresence, session: Session, timers: RecordedTimers, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = clock.monotonic()
    monkeypatch.setattr(clock, "monotonic", lambda: started + 3600)
    with viewers.viewing(session):
        with viewers.viewing(session):
            pass
        assert timers.delays == []  # one viewer is still connected
    assert timers.delays == [10.0]
    await until(session, is_over)


async def test_viewers_have_a_minute_to_return_after_a_start_of_the_server(
    viewers: ViewerPresence, session: Session, timers: RecordedTimers
) -> None:
    viewers.schedule_end(session)
    assert 50 < timers.delays[0] <= 60
    with viewers.viewing(session):
        await asyncio.sleep(3 * SHORT_SECONDS)
        assert not is_over(session.snapshot)
    await until(session, is_over)


async def test_a_viewer_that_announces_its_leaving_ends_the_session_earlier(
    viewers: ViewerPresence, session: Session, timers: RecordedTimers
) -> None:
    viewers.schedule_early_end(session)
    assert timers.delays == [5.0]
    await until(session, is_over)


async def test_a_session_without_terminate_stays_active_without_viewers(
    viewers: ViewerPresence, local_server: ServerWithoutWeb, timers: RecordedTimers
) -> None:
    kept = await local_server.session()
    with viewers.viewing(kept):
        pass
    viewers.schedule_early_end(kept)
    await asyncio.sleep(3 * SHORT_SECONDS)
    assert not is_over(kept.snapshot)


async def test_a_viewer_whose_page_is_hidden_keeps_the_session(
    viewers: ViewerPresence, session: Session, timers: RecordedTimers
) -> None:
    with viewers.viewing(session), viewers.attentive.track(session.id) as set_visible:
        set_visible(True)
        set_visible(False)  # the tab is hidden
        assert timers.delays == []
    assert len(timers.delays) == 1
    await until(session, is_over)


def test_a_session_has_an_attentive_viewer_while_a_page_is_visible() -> None:
    attentive = AttentiveViewers()
    with attentive.track("s") as set_visible:
        assert not attentive.any_at("s")  # connected, but its page is not visible
        set_visible(True)
        set_visible(True)
        with attentive.track("s") as set_other_visible:
            set_other_visible(True)
            set_visible(False)
            set_visible(False)
            assert attentive.any_at("s") and not attentive.any_at("another")
        assert not attentive.any_at("s")
        set_visible(True)
    assert not attentive.any_at("s")
