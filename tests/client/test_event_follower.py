"""A follower gets every event once and in order, also after its connection was cut."""

import asyncio
import os
import random
from contextlib import aclosing

import pytest

from bullpen.client import Client, Event
from bullpen.domain.errors import NotFound
from support.server import Server
from support.tcp_proxy import TcpProxy

FULL = os.environ.get("BULLPEN_FAULTS") == "full"
CUTS = 1000 if FULL else 100
DEADLINE = 1800 if FULL else 200  # seconds


class EventWriter:
    """Causes events, at most 20 more than were read: a slower follower would get a snapshot instead."""

    def __init__(self, client: Client, session_id: str) -> None:
        self.stopped = False
        self._client = client
        self._session_id = session_id
        self._permits = asyncio.Semaphore(20)

    def count_read(self) -> None:
        self._permits.release()

    async def run(self) -> None:
        number = 0
        while not self.stopped:
            await self._permits.acquire()
            number += 1
            await self._client.change_session(self._session_id, title=f"title {number}")


async def collect(client: Client, session_id: str, upto: int, after: int = 0) -> list[Event]:
    seen: list[Event] = []
    async with aclosing(client.follow(session_id, after)) as events:
        async for event in events:
            seen.append(event)
            if event.seq >= upto:
                break
    return seen


async def test_past_events_come_first_and_then_new_ones(client: Client, server: Server) -> None:
    session = await client.create_session(location_path=str(server.workspace))
    async with asyncio.timeout(60), aclosing(client.follow(session.id)) as events:
        assert (await anext(events)).type == "session_start"
        await client.change_session(session.id, title="new")
        changed = await anext(events)
        assert (changed.seq, changed.type, changed.data["title"]) == (2, "session_changed", "new")


async def test_a_follower_can_begin_after_any_event(client: Client, server: Server) -> None:
    session = await client.create_session(location_path=str(server.workspace))
    for number in range(5):
        await client.change_session(session.id, title=f"{number}")
    async with asyncio.timeout(60):
        assert [event.seq for event in await collect(client, session.id, 6, after=3)] == [4, 5, 6]


@pytest.mark.timeout(DEADLINE + 60)
async def test_cuts_lose_and_repeat_no_event(
    cut_client: Client, client: Client, wire: TcpProxy, server: Server
) -> None:
    session = await client.create_session(location_path=str(server.workspace))
    generator = random.Random(11)
    wire.should_cut = lambda direction, nth: (
        direction == "down" and generator.random() < (0.2 if nth else 0.02)
    )
    writer = EventWriter(client, session.id)
    seen: list[Event] = []
    async with asyncio.timeout(DEADLINE), asyncio.TaskGroup() as tasks:
        tasks.create_task(writer.run())
        async with aclosing(cut_client.follow(session.id)) as events:
            async for event in events:
                seen.append(event)
                writer.count_read()
                if wire.cuts >= CUTS:
                    break
        writer.stopped = True
        writer.count_read()
    stored: list[Event] = []
    while len(stored) < len(seen):
        stored += (await client.events(session.id, after=len(stored))).events
    assert wire.cuts >= CUTS
    assert seen == stored[: len(seen)]


async def test_a_killed_server_loses_and_repeats_no_event(client: Client, server: Server) -> None:
    session = await client.create_session(location_path=str(server.workspace))
    async with asyncio.timeout(120), asyncio.TaskGroup() as tasks:
        following = tasks.create_task(collect(client, session.id, 30))
        for number in range(29):
            if number % 10 == 5:
                await server.restart()
            await client.change_session(session.id, title=f"{number}")
        seen = await following
    assert [event.seq for event in seen] == list(range(1, 31))
    assert seen == (await client.events(session.id)).events


async def test_following_an_unknown_session_is_an_error(client: Client) -> None:
    async with asyncio.timeout(60):
        with pytest.raises(NotFound):
            await anext(client.follow("nothing"))
