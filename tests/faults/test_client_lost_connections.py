"""The Python client loses its connection again and again, in both directions, also in its first message.

The first message brings the history of a terminal or the snapshot of a session.
"""

import asyncio
import json
import os
import random
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import aclosing
from pathlib import Path

import pytest

from bullpen.client import Client, Event, ExitFrame, Frame, HistoryFrame, OutputFrame
from bullpen.client.terminal import Terminal
from bullpen.log.log import MAX_EVENTS_BEHIND, SessionLog
from bullpen.store.database import Database
from bullpen.store.events import EventStore
from support.intervals import shortened
from support.sample_events import error_draft
from support.server import Server
from support.tcp_proxy import TcpProxy

CUTS = 1000 if os.environ.get("BULLPEN_FAULTS") == "full" else 100
FEWER_CUTS = CUTS // 5
FIRST_CUTS = 3  # of those, before the first message is complete: the client then waits longer between retries
END = b"<end>"

# Prints increasing numbers and writes its input to a journal until the input ends with <end>.
COUNTER = """
import os, select, sys, tty
tty.setraw(0)
os.write(1, b"ready\\n")
count, last = 0, b""
with open(sys.argv[1], "wb", buffering=0) as journal:
    while not last.endswith(b"<end>"):
        if select.select([0], [], [], 0.002)[0]:
            data = os.read(0, 65536)
            journal.write(data)
            last = (last + data)[-5:]
        count += 1
        os.write(1, b"%d\\n" % count)
"""


@pytest.fixture(autouse=True)
def quick_retries() -> Iterator[None]:
    with shortened(retry=0.1):
        yield


@pytest.fixture
async def wire(server: Server) -> AsyncIterator[TcpProxy]:
    async with TcpProxy(server.port).running() as wire:
        yield wire


async def read_frames(terminal: Terminal, ready: asyncio.Event) -> list[Frame]:
    """Return all frames until the terminal ends, and set `ready` when the program has started."""
    frames, start = [], b""
    async for frame in terminal:
        frames.append(frame)
        if not ready.is_set() and isinstance(frame, OutputFrame):
            start += frame.data
            if b"ready\n" in start:
                ready.set()
    return frames


async def type_numbers(terminal: Terminal, wire: TcpProxy, rng: random.Random) -> bytes:
    """Type numbers until the connection was cut CUTS times; return everything that was typed."""
    typed = b""
    while wire.cuts < CUTS:
        batch = b"<%d>" % rng.randrange(10**6)
        typed += batch
        await terminal.write(batch)
        if rng.random() < 0.3:
            await terminal.flush()
    await terminal.write(END)
    return typed + END


async def test_a_terminal_connection_that_is_cut_loses_and_repeats_nothing_in_either_direction(
    server: Server, wire: TcpProxy, tmp_path: Path
) -> None:
    program, journal = tmp_path / "counter.py", tmp_path / "journal"
    program.write_text(COUNTER)
    session = await server.new_session()
    worker = await server.new_terminal(session["id"])
    terminal_id, rng, ready = (session["id"], worker["id"]), random.Random(6), asyncio.Event()
    async with (
        asyncio.timeout(280),
        Client(wire.url, server.token) as client,
        client.terminal(*terminal_id, after=0) as terminal,
        asyncio.TaskGroup() as tasks,
    ):
        reading = tasks.create_task(read_frames(terminal, ready))
        await terminal.write(f"exec {sys.executable} {program} {journal}\n".encode())
        await ready.wait()
        wire.should_cut = lambda _, nth: wire.cuts < CUTS and rng.random() < (0.1 if nth else 0.01)
        typed = await type_numbers(terminal, wire, rng)
        frames = await reading
    assert wire.cuts >= CUTS
    assert frames[-1] == ExitFrame(0, None)
    assert journal.read_bytes() == typed

    output = b"".join(frame.data for frame in frames if isinstance(frame, OutputFrame))
    async with Client(server.url, server.token) as client:
        assert output == b"".join([piece.data async for piece in client.output(*terminal_id)])
    counted = output.split(b"ready\n", 1)[1].splitlines()
    assert counted == [b"%d" % number for number in range(1, len(counted) + 1)]


def cut_the_first_messages(wire: TcpProxy, received: Sequence[object], rng: random.Random) -> None:
    """Cut the connection in the two messages after the handshake, and at random places after these."""

    def scissors(direction: str, nth: int) -> bool:
        if not received:
            return wire.cuts < FIRST_CUTS and direction == "down" and nth in (1, 2) and rng.random() < 0.5
        return wire.cuts < FEWER_CUTS and rng.random() < (0.04 if nth else 0.01)

    wire.should_cut = scissors


async def test_a_terminal_connection_cut_in_the_history_continues_directly_after_it(
    server: Server, wire: TcpProxy, tmp_path: Path
) -> None:
    program = tmp_path / "counter.py"
    program.write_text(COUNTER)
    session = await server.new_session()
    worker = await server.new_terminal(session["id"])
    terminal_id, ready = (session["id"], worker["id"]), asyncio.Event()
    received: list[OutputFrame | HistoryFrame] = []
    async with (
        asyncio.timeout(280),
        Client(server.url, server.token) as direct,
        Client(wire.url, server.token) as cut,
        direct.terminal(*terminal_id, after=0) as writer,
        asyncio.TaskGroup() as tasks,
    ):
        tasks.create_task(read_frames(writer, ready))
        await writer.write(f"exec {sys.executable} {program} {tmp_path / 'journal'}\n".encode())
        await ready.wait()
        cut_the_first_messages(wire, received, random.Random(7))
        async with cut.terminal(*terminal_id) as terminal:
            async for frame in terminal:
                if isinstance(frame, OutputFrame | HistoryFrame):
                    received.append(frame)
                if wire.cuts == FEWER_CUTS:
                    await writer.write(END)
        stored = b"".join([piece.data async for piece in direct.output(*terminal_id)])
    history, *output = received
    assert isinstance(history, HistoryFrame)
    assert (
        b"".join(frame.data for frame in output if isinstance(frame, OutputFrame)) == stored[history.offset :]
    )
    assert not any(isinstance(frame, HistoryFrame) for frame in output)


async def test_a_follower_whose_connection_is_cut_in_the_snapshot_gets_every_event_once(
    server: Server, wire: TcpProxy
) -> None:
    session = await server.new_session()
    await server.stop()
    async with Database.open(f"sqlite:///{server.home}/bullpen.db") as database:
        log = await SessionLog.open(EventStore(database), session["id"])
        await log.append([error_draft(str(n)) for n in range(MAX_EVENTS_BEHIND)])
    await server.start()
    async with server.socket(f"/ws/session/{session['id']}") as socket:
        await socket.send('{"type": "subscribe", "after": 0}')
        while (message := json.loads(await socket.recv()))["type"] == "heartbeat":
            pass
        assert message["type"] == "snapshot"
    received: list[Event] = []
    cut_the_first_messages(wire, received, random.Random(8))
    async with (
        asyncio.timeout(280),
        Client(wire.url, server.token) as cut,
        aclosing(cut.follow(session["id"])) as events,
    ):
        async for event in events:
            received.append(event)
            if event.seq > MAX_EVENTS_BEHIND:
                if wire.cuts == FEWER_CUTS:
                    break
                await server.call("PATCH", f"/api/sessions/{session['id']}", json={"title": str(event.seq)})
    assert [event.seq for event in received] == list(range(1, len(received) + 1))
    assert [event.data["message"] for event in received[1 : MAX_EVENTS_BEHIND + 1]] == [
        str(n) for n in range(MAX_EVENTS_BEHIND)
    ]
