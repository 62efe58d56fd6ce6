"""A follower loads events that a server skips: with a snapshot instead of events, or with a missing number.

A real server skips events only after thousands of them, so these tests use a fake server.
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
Respond = Callable[[int, Callable[[dict[str, Any]], Awaitable[None]]], Awaitable[None]]


def wire_events(*seqs: int) -> dict[str, Any]:
    events = [{"seq": seq, "type": "error", "timestamp": EPOCH.isoformat(), "data": {}} for seq in seqs]
    return {"type": "events", "events": events, "head": seqs[-1]}


async def stored_page(after: int) -> EventPage:
    """Return at most two events of a log with nine."""
    seqs = range(after + 1, min(after + 3, 10))
    raw = wire_events(*seqs)["events"]
    return EventPage(events=[Event(seq=each["seq"], type="error", timestamp=EPOCH) for each in raw], head=9)


@asynccontextmanager
async def following(respond: Respond, after: int = 0) -> AsyncIterator[AsyncIterator[Event]]:
    """Follow a fake server that calls `respond` for each subscription."""

    async def serve_socket(socket: ServerConnection) -> None:
        async for message in socket:

            async def send(answer: dict[str, Any]) -> None:
                await socket.send(json.dumps(answer))

            await respond(json.loads(message)["after"], send)

    async with asyncio.timeout(60), serve(serve_socket, "127.0.0.1", 0) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        link = ReconnectingSocket(ServerDiscovery.at(f"http://127.0.0.1:{port}", "token"), lambda: "/")
        async with aclosing(EventFollower(link, stored_page, after).events()) as events:
            yield events


async def take(events: AsyncIterator[Event], count: int) -> list[int]:
    return [(await anext(events)).seq for _ in range(count)]


async def test_the_events_that_a_snapshot_replaces_are_loaded() -> None:
    async def respond(after: int, send: Callable[[dict[str, Any]], Awaitable[None]]) -> None:
        await send({"type": "snapshot", "seq": 7, "session": {}})
        await send(wire_events(8))
        await send(wire_events(9, 10))

    async with following(respond) as events:
        assert await take(events, 10) == list(range(1, 11))


async def test_a_snapshot_of_known_events_changes_nothing() -> None:
    async def respond(after: int, send: Callable[[dict[str, Any]], Awaitable[None]]) -> None:
        await send({"type": "snapshot", "seq": after, "session": {}})
        await send({"type": "heartbeat", "head": after})
        await send(wire_events(after + 1))

    async with following(respond, after=5) as events:
        assert await take(events, 1) == [6]


async def test_a_missing_number_is_requested_again() -> None:
    subscriptions: list[int] = []

    async def respond(after: int, send: Callable[[dict[str, Any]], Awaitable[None]]) -> None:
        subscriptions.append(after)
        await send(wire_events(1, 2, 4) if len(subscriptions) == 1 else wire_events(3, 4))

    async with following(respond) as events:
        assert await take(events, 4) == [1, 2, 3, 4]
    assert subscriptions == [0, 2]
