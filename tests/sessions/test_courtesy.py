"""What catches up behind the house gives way to who asks, and to nobody else."""

from bullpen import clock
from bullpen.sessions.courtesy import Courtesy


async def test_a_house_that_nobody_asks_is_worked_for_without_rest() -> None:
    assert not rests(Courtesy())


async def test_a_piece_of_work_is_followed_by_a_rest_when_somebody_has_asked() -> None:
    courtesy = Courtesy()
    deadline = clock.monotonic() + 30
    courtesy.asked()
    while not rests(courtesy):  # a machine that stood still let the moment pass
        assert clock.monotonic() < deadline
        courtesy.asked()


def rests(courtesy: Courtesy) -> bool:
    """Whether a piece of work without a pause of its own is followed by one."""

    async def work() -> None:
        async with courtesy.piece():
            pass

    running = work()
    try:
        running.send(None)
    except StopIteration:
        return False
    running.close()
    return True
