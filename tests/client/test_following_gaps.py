"""What a follower does when a server skips: a snapshot instead of events, or a number left out.

The real server skips only after thousands of events, so this one is played.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from datetime import UTC, datetime
from typing import Any

from websockets.asyncio.server import ServerConnection, serve

from bullpen.client import Event, EventPage, ServerDiscovery
from bullpen.client.event_follower import EventFollower
from bullpen.client.reconnecting_socket import ReconnectingSocket

EPOCH = datetime.fromtimestamp(0, UTC)
Play = Callable[[int, Callable[[dict[str, Any]], Awaitable[None]]], Awaitable[None]]


def wire_events(*seqs: int) -> dict[str, Any]:
    events = [{"seq": seq, "type": "error", "timestamp": EPOCH.isoformat(), "data": {}} for seq in seqs]
    return {"type": "events", "events": events, "head": seqs[-1]}


async def stored_page(after: int) -> EventPage:
    """Two events of a log of nine."""
    seqs = range(after + 1, min(after + 3, 10))
    raw = wire_events(*seqs)["events"]
    return EventPage(events=[Event(seq=each["seq"], type="error", timestamp=EPOCH) for each in raw], head=9)


@asynccontextmanager
async def following(play: Play, after: int = 0) -> AsyncIterator[AsyncIterator[Event]]:
    """Follows a server that plays a part after each subscription."""

    async def talk(socket: ServerConnection) -> None:
        async for message in socket:

            async def say(answer: dict[str, Any]) -> None:
                await socket.send(json.dumps(answer))

            await play(json.loads(message)["after"], say)

    async with asyncio.timeout(60), serve(talk, "127.0.0.1", 0) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        link = ReconnectingSocket(ServerDiscovery.at(f"http://127.0.0.1:{port}", "token"), lambda: "/")
        async with aclosing(EventFollower(link, stored_page, after).events()) as events:
            yield events


async def take(events: AsyncIterator[Event], count: int) -> list[int]:
    return [(await anext(events)).seq for _ in range(count)]


async def test_a_snapshot_is_made_good_with_the_events_it_stands_for() -> None:
    async def play(after: int, say: Callable[[dict[str, Any]], Awaitable[None]]) -> None:
        await say({"type": "snapshot", "seq": 7, "session": {}})
        await say(wire_events(8))
        await say(wire_events(9, 10))

    async with following(play) as events:
        assert await take(events, 10) == list(range(1, 11))


async def test_a_snapshot_of_what_is_known_changes_nothing() -> None:
    async def play(after: int, say: Callable[[dict[str, Any]], Awaitable[None]]) -> None:
        await say({"type": "snapshot", "seq": after, "session": {}})
        await say({"type": "heartbeat", "head": after})
        await say(wire_events(after + 1))

    async with following(play, after=5) as events:
        assert await take(events, 1) == [6]


async def test_a_number_left_out_is_asked_for_again() -> None:
    asked: list[int] = []

    async def play(after: int, say: Callable[[dict[str, Any]], Awaitable[None]]) -> None:
        asked.append(after)
        await say(wire_events(1, 2, 4) if len(asked) == 1 else wire_events(3, 4))

    async with following(play) as events:
        assert await take(events, 4) == [1, 2, 3, 4]
    assert asked == [0, 2]
