"""Background jobs pause while requests or keystrokes are served, and only then."""

from collections.abc import Coroutine
from typing import Any

import pytest

from bullpen import clock
from bullpen.sessions.background_throttle import MAX_TYPING_SECONDS, RECENT_SECONDS, BackgroundThrottle


async def test_a_job_is_not_paused_while_no_request_is_served() -> None:
    assert not pauses_after_step(BackgroundThrottle())


async def test_a_job_pauses_after_each_step_when_a_request_was_served_recently() -> None:
    throttle = BackgroundThrottle()
    deadline = clock.monotonic() + 30
    throttle.note_request()
    while not pauses_after_step(throttle):  # on a paused machine the request is no longer recent
        assert clock.monotonic() < deadline
        throttle.note_request()


def pauses_after_step(throttle: BackgroundThrottle) -> bool:
    """Return whether the throttle pauses after a step of a background job."""

    async def work() -> None:
        async with throttle.step():
            pass

    return must_wait(work())


def waits_for_typing(throttle: BackgroundThrottle) -> bool:
    return must_wait(throttle.wait_while_typing())


def must_wait(work: Coroutine[Any, Any, None]) -> bool:
    """Return whether the coroutine has to wait."""
    try:
        work.send(None)
    except StopIteration:
        return False
    work.close()
    return True


async def test_a_job_waits_while_a_user_types(monkeypatch: pytest.MonkeyPatch) -> None:
    throttle, now = BackgroundThrottle(), ManualClock(monkeypatch)
    assert not waits_for_typing(throttle)
    throttle.note_keystroke()
    assert waits_for_typing(throttle)
    now.advance(RECENT_SECONDS / 2)
    throttle.note_keystroke()
    now.advance(RECENT_SECONDS / 2)
    assert waits_for_typing(throttle)
    now.advance(RECENT_SECONDS)
    assert not waits_for_typing(throttle)


async def test_a_job_does_not_wait_forever_for_a_user_who_types_without_a_pause(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    throttle, now = BackgroundThrottle(), ManualClock(monkeypatch)
    start = now.seconds
    throttle.note_keystroke()
    while waits_for_typing(throttle):
        now.advance(RECENT_SECONDS / 2)
        throttle.note_keystroke()
    assert MAX_TYPING_SECONDS < now.seconds - start < MAX_TYPING_SECONDS + RECENT_SECONDS
    now.advance(2 * RECENT_SECONDS)
    throttle.note_keystroke()
    assert waits_for_typing(throttle), "after a pause, the next keystroke starts a new wait"


class ManualClock:
    """A monotonic clock that only `advance` moves."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seconds = 1000.0
        monkeypatch.setattr(clock, "monotonic", lambda: self.seconds)

    def advance(self, seconds: float) -> None:
        self.seconds += seconds
