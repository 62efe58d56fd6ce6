"""The clock is set an hour ahead and back during a turn: events stay in order and deadlines are correct."""

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
    """The clock of a server, which a test sets through a file."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def set(self, seconds: int) -> None:
        """Shift the clock by these seconds. A rename is atomic, so the server reads a complete file."""
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


async def test_a_turn_continues_in_order_when_the_clock_is_set_forward_and_back(
    server: Server, workspace: Path, clock: Clock
) -> None:
    """An idle session ends after 30 minutes and a permission after 10; neither time has passed."""
    server.set(AGENT_SESSION_IDLE_TIMEOUT="30", BULLPEN_PERMISSION_TIMEOUT="600")
    await server.restart()
    define_scripted(workspace)
    client = await RetryingClient.begin(server)
    async with client.following():
        await client.prompt("[[stream n=30 delay=0.02]] [[permission title=x]] [[stream n=60 delay=0.02]]")
        await client.until(lambda _: client.open_permissions())
        began = client.events[-1]["timestamp"]
        clock.set(HOUR)
        idle = await RetryingClient.begin(server)  # created while the clock is ahead; it is then set back
        await server.call("PATCH", client.path, json={"title": "an hour later"})
        await client.until(lambda _: client.events_of_type("session_changed"))
        assert _ms(client.events[-1]["timestamp"]) - _ms(began) >= HOUR * 1000, "the clock was not set"
        clock.set(-HOUR)
        (question,) = client.open_permissions()
        assert await client.answer(question, "yes") == 204
        await client.until(lambda _: "<40>" in client.agent_text())
        clock.set(HOUR)
        await client.until(lambda _: "<60>" in client.agent_text())
        clock.set(-HOUR)
        await server.restart()
        await client.until_turns(1)
        log = await client.stored_events()
    assert log == client.events
    assert [event["seq"] for event in log] == list(range(1, len(log) + 1))
    assert all(_ms(before["timestamp"]) <= _ms(after["timestamp"]) for before, after in pairwise(log))
    assert client.agent_text() == "".join(f"<{number}>" for number in range(90))
    assert [event["data"]["stopReason"] for event in client.events_of_type("turn_end")] == ["end_turn"]
    for each in (client, idle):
        session = await each.get()
        assert (session["status"], session["workers"][0]["state"]) == ("active", "active")


async def test_a_timeout_of_seconds_is_not_delayed_when_the_clock_is_set_back(
    server: Server, workspace: Path, clock: Clock
) -> None:
    server.set(BULLPEN_PERMISSION_TIMEOUT="1", BULLPEN_QUEUE_DELAY_SECONDS="1")
    await server.restart()
    define_scripted(workspace)
    client = await RetryingClient.begin(server)
    async with client.following():
        await client.until(lambda _: client.events_of_type("worker_ready"))
        clock.set(HOUR)
        await client.prompt("[[stream n=10 delay=0.02]] [[permission title=x]]")
        await client.prompt("[[chunk next]]")  # is sent from the queue one second after the turn
        await client.until(lambda _: "<3>" in client.agent_text())
        clock.set(0)
        await client.until(lambda _: "next" in client.agent_text())
    answered = [
        each["data"] for each in client.events_of_type("permission") if each["data"]["status"] != "pending"
    ]
    assert [each["by"] for each in answered] == ["timeout"]


def _ms(timestamp: str) -> float:
    return datetime.fromisoformat(timestamp).timestamp() * 1000
