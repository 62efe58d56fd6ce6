"""What catches up behind the house gives way to who asks or types, and to nobody else."""

from collections.abc import Coroutine
from typing import Any

import pytest

from bullpen import clock
from bullpen.sessions.background_throttle import MOMENT, PATIENCE, BackgroundThrottle


async def test_a_house_that_nobody_asks_is_worked_for_without_rest() -> None:
    assert not rests(BackgroundThrottle())


async def test_a_piece_of_work_is_followed_by_a_rest_when_somebody_has_asked() -> None:
    courtesy = BackgroundThrottle()
    deadline = clock.monotonic() + 30
    courtesy.asked()
    while not rests(courtesy):  # a machine that stood still let the moment pass
        assert clock.monotonic() < deadline
        courtesy.asked()


def rests(courtesy: BackgroundThrottle) -> bool:
    """Whether a piece of work without a pause of its own is followed by one."""

    async def work() -> None:
        async with courtesy.piece():
            pass

    return pauses(work())


def waits(courtesy: BackgroundThrottle) -> bool:
    return pauses(courtesy.pause())


def pauses(work: Coroutine[Any, Any, None]) -> bool:
    """Whether it has to wait for something."""
    try:
        work.send(None)
    except StopIteration:
        return False
    work.close()
    return True


async def test_work_waits_while_somebody_types(monkeypatch: pytest.MonkeyPatch) -> None:
    courtesy, now = BackgroundThrottle(), Clock(monkeypatch)
    assert not waits(courtesy)
    courtesy.typed()
    assert waits(courtesy)
    now.pass_by(MOMENT / 2)
    courtesy.typed()
    now.pass_by(MOMENT / 2)
    assert waits(courtesy)
    now.pass_by(MOMENT)
    assert not waits(courtesy)


async def test_it_does_not_wait_for_ever_for_who_never_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    courtesy, now = BackgroundThrottle(), Clock(monkeypatch)
    began = now.seconds
    courtesy.typed()
    while waits(courtesy):
        now.pass_by(MOMENT / 2)
        courtesy.typed()
    assert PATIENCE < now.seconds - began < PATIENCE + MOMENT
    now.pass_by(2 * MOMENT)
    courtesy.typed()
    assert waits(courtesy), "after a pause somebody begins anew"


class Clock:
    """Stands still until told otherwise."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seconds = 1000.0
        monkeypatch.setattr(clock, "monotonic", lambda: self.seconds)

    def pass_by(self, seconds: float) -> None:
        self.seconds += seconds
