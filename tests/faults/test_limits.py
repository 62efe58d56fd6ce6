"""A fork bomb, a memory hog and a disk filler in one session delay neither the server nor other sessions."""

import asyncio
import os
import statistics
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from bullpen.keeper.time_slice import shorten_time_slice
from support.limited_server import HAS_GROUPS, REASONS, left_behind, offend, start_limited
from support.server import Server
from support.session_client import SessionClient, define_scripted

FULL = os.environ.get("BULLPEN_FAULTS") == "full"
ROUNDS = 30 if FULL else 1
SESSIONS = 3
PAUSE = 0.005  # between two requests for the health
TURN = "[[stream n=30 delay=0.02]]"


@pytest.mark.timeout(1200 if FULL else 180)
@pytest.mark.parametrize("enforced_by", ["groups", "server"] if HAS_GROUPS else ["server"])
async def test_offenders_are_ended_while_the_server_answers_and_turns_of_other_sessions_finish(
    server: Server, enforced_by: str
) -> None:
    await start_limited(server, enforced_by)
    await define_scripted(server)
    shorten_time_slice()  # of the client, whose own delays beside the offenders do not count
    others = [await SessionClient.begin(server) for _ in range(SESSIONS)]
    session = await server.new_session()
    quiet: list[float] = []
    loud: list[float] = []
    offenders = []
    async with turns_running(others):
        for _ in range(ROUNDS):  # in turns, since other programs of the machine work too
            await run_all(server, session["id"], ["nothing"] * len(REASONS), quiet)
            ended = await run_all(server, session["id"], list(REASONS), loud)
            assert all(each["error"] in REASONS.values() for each in ended), [each["error"] for each in ended]
            offenders += ended
    before, beside = p99(quiet), p99(loud)
    print(
        f"\nhealth, limits enforced by {enforced_by}: p99 {before * 1000:.1f} ms beside harmless programs "
        f"({len(quiet)} requests), {beside * 1000:.1f} ms beside offenders ({len(loud)} requests), "
        f"ratio {beside / before:.2f}"
    )
    async with asyncio.timeout(30):
        while any(left_behind(server, each["id"]) for each in offenders):
            await asyncio.sleep(PAUSE)
    assert (await server.call("GET", f"/api/sessions/{session['id']}"))["status"] == "active"


async def run_all(
    server: Server, session_id: str, programs: list[str], samples: list[float]
) -> list[dict[str, Any]]:
    """Run programs in a session until they have ended, and measure meanwhile; return their workers."""
    async with sampling(server, samples):
        roles = [f"{number}-{what}" for number, what in enumerate(programs)]
        started = [
            await offend(server, session_id, what, role) for what, role in zip(programs, roles, strict=True)
        ]
        ended = [await server.worker_in(session_id, each, "failed", "exited") for each in started]
    for each in started:
        await server.call("DELETE", f"/api/sessions/{session_id}/workers/{each}")
    return ended


def p99(samples: list[float]) -> float:
    return statistics.quantiles(samples, n=100)[-1]


@asynccontextmanager
async def sampling(server: Server, samples: list[float]) -> AsyncIterator[None]:
    """Measure the time of a request for the health, again and again."""

    async def sample() -> None:
        while True:
            began = time.monotonic()
            await server.call("GET", "/api/health")
            samples.append(time.monotonic() - began)
            await asyncio.sleep(PAUSE)

    task = asyncio.create_task(sample())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


@asynccontextmanager
async def turns_running(clients: list[SessionClient]) -> AsyncIterator[None]:
    """Run turns in these sessions one after the other, and check that all of them finish."""
    is_over = asyncio.Event()

    async def run(client: SessionClient) -> None:
        while not is_over.is_set():
            assert (await client.run_turn(TURN))["data"]["stopReason"] == "end_turn"

    async with asyncio.TaskGroup() as tasks:
        for client in clients:
            tasks.create_task(run(client))
        yield
        is_over.set()
