"""What catches up behind the house gives way to who asks or types, and to nobody else."""

from collections.abc import Coroutine
from typing import Any

import pytest

from bullpen import clock
from bullpen.sessions.background_throttle import MAX_TYPING_SECONDS, RECENT_SECONDS, BackgroundThrottle


async def test_a_house_that_nobody_asks_is_worked_for_without_rest() -> None:
    assert not rests(BackgroundThrottle())


async def test_a_piece_of_work_is_followed_by_a_rest_when_somebody_has_asked() -> None:
    throttle = BackgroundThrottle()
    deadline = clock.monotonic() + 30
    throttle.note_request()
    while not rests(throttle):  # a machine that stood still let the moment pass
        assert clock.monotonic() < deadline
        throttle.note_request()


def rests(throttle: BackgroundThrottle) -> bool:
    """Whether a piece of work without a pause of its own is followed by one."""

    async def work() -> None:
        async with throttle.step():
            pass

    return pauses(work())


def waits(throttle: BackgroundThrottle) -> bool:
    return pauses(throttle.wait_while_typing())


def pauses(work: Coroutine[Any, Any, None]) -> bool:
    """Whether it has to wait for something."""
    try:
        work.send(None)
    except StopIteration:
        return False
    work.close()
    return True


async def test_work_waits_while_somebody_types(monkeypatch: pytest.MonkeyPatch) -> None:
    throttle, now = BackgroundThrottle(), Clock(monkeypatch)
    assert not waits(throttle)
    throttle.note_keystroke()
    assert waits(throttle)
    now.pass_by(RECENT_SECONDS / 2)
    throttle.note_keystroke()
    now.pass_by(RECENT_SECONDS / 2)
    assert waits(throttle)
    now.pass_by(RECENT_SECONDS)
    assert not waits(throttle)


async def test_it_does_not_wait_for_ever_for_who_never_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    throttle, now = BackgroundThrottle(), Clock(monkeypatch)
    began = now.seconds
    throttle.note_keystroke()
    while waits(throttle):
        now.pass_by(RECENT_SECONDS / 2)
        throttle.note_keystroke()
    assert MAX_TYPING_SECONDS < now.seconds - began < MAX_TYPING_SECONDS + RECENT_SECONDS
    now.pass_by(2 * RECENT_SECONDS)
    throttle.note_keystroke()
    assert waits(throttle), "after a pause, the next keystroke starts a new wait"


class Clock:
    """Stands still until told otherwise."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seconds = 1000.0
        monkeypatch.setattr(clock, "monotonic", lambda: self.seconds)

    def pass_by(self, seconds: float) -> None:
        self.seconds += seconds
