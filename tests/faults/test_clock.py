"""R-16: the clock is set an hour ahead and back while an agent works: order stays, no deadline is wrong."""

import os
from collections.abc import AsyncIterator
from datetime import datetime
from itertools import pairwise
from pathlib import Path

import pytest

from support.retrying_client import RetryingClient, define_scripted
from support.server import Server

HOUR = 3600
SET_CLOCK = Path(__file__).parents[1] / "support" / "set_clock"


class Clock:
    """The clock of a server, as somebody sets it."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def set(self, seconds: int) -> None:
        """At once for whoever looks: a half written file would be another time."""
        new = self.file.with_suffix(".new")
        new.write_text(str(seconds))
        new.rename(self.file)


@pytest.fixture
def clock(tmp_path: Path) -> Clock:
    return Clock(tmp_path / "clock")


@pytest.fixture
async def server(tmp_path: Path, workspace: Path, clock: Clock) -> AsyncIterator[Server]:
    path = os.pathsep.join(filter(None, [str(SET_CLOCK), os.environ.get("PYTHONPATH")]))
    this = Server(tmp_path / "home", workspace, {"PYTHONPATH": path, "SET_CLOCK": str(clock.file)})
    await this.start()
    yield this
    await this.close()


async def test_r16_a_turn_goes_on_in_order_whatever_the_clock_says(
    server: Server, workspace: Path, clock: Clock
) -> None:
    """Half an hour of rest ends a session, ten minutes a question: neither has passed."""
    server.set(AGENT_SESSION_IDLE_TIMEOUT="30", BULLPEN_PERMISSION_TIMEOUT="600")
    await server.restart()
    define_scripted(workspace)
    talker = await RetryingClient.begin(server)
    async with talker.following():
        await talker.prompt("[[stream n=30 delay=0.02]] [[permission title=x]] [[stream n=60 delay=0.02]]")
        await talker.until(lambda _: talker.open_permissions())
        began = talker.events[-1]["timestamp"]
        clock.set(HOUR)
        resting = await RetryingClient.begin(server)  # made by the new clock, which is then set back
        await server.call("PATCH", talker.path, json={"title": "an hour later"})
        await talker.until(lambda _: talker.events_of_type("session_changed"))
        assert _ms(talker.events[-1]["timestamp"]) - _ms(began) >= HOUR * 1000, "the clock was not set"
        clock.set(-HOUR)
        (question,) = talker.open_permissions()
        assert await talker.answer(question, "yes") == 204
        await talker.until(lambda _: "<40>" in talker.agent_text())
        clock.set(HOUR)
        await talker.until(lambda _: "<60>" in talker.agent_text())
        clock.set(-HOUR)
        await server.restart()
        await talker.until_turns(1)
        log = await talker.stored_events()
    assert log == talker.events
    assert [event["seq"] for event in log] == list(range(1, len(log) + 1))
    assert all(_ms(one["timestamp"]) <= _ms(next["timestamp"]) for one, next in pairwise(log))
    assert talker.agent_text() == "".join(f"<{number}>" for number in range(90))
    assert [event["data"]["stopReason"] for event in talker.events_of_type("turn_end")] == ["end_turn"]
    for client in (talker, resting):
        session = await client.get()
        assert (session["status"], session["workers"][0]["state"]) == ("active", "active")


async def test_r16_what_is_due_after_seconds_does_not_wait_for_a_clock_that_was_set_back(
    server: Server, workspace: Path, clock: Clock
) -> None:
    server.set(BULLPEN_PERMISSION_TIMEOUT="1", BULLPEN_QUEUE_DELAY_SECONDS="1")
    await server.restart()
    define_scripted(workspace)
    talker = await RetryingClient.begin(server)
    async with talker.following():
        await talker.until(lambda _: talker.events_of_type("worker_ready"))
        clock.set(HOUR)
        await talker.prompt("[[stream n=10 delay=0.02]] [[permission title=x]]")
        await talker.prompt("[[chunk next]]")  # waits in the queue, a second longer than the agent works
        await talker.until(lambda _: "<3>" in talker.agent_text())
        clock.set(0)
        await talker.until(lambda _: "next" in talker.agent_text())
    answered = [
        each["data"] for each in talker.events_of_type("permission") if each["data"]["status"] != "pending"
    ]
    assert [each["by"] for each in answered] == ["timeout"]


def _ms(timestamp: str) -> float:
    return datetime.fromisoformat(timestamp).timestamp() * 1000
