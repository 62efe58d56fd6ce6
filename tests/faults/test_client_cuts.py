"""R-06 for our own client: connections that are cut again and again, both ways at once, and from the first
message on: the one that says what was before."""

import asyncio
import json
import os
import random
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from pathlib import Path

import pytest

from bullpen.client import Client, Event, ExitFrame, Frame, HistoryFrame, OutputFrame
from bullpen.client.terminal import Terminal
from bullpen.log.log import MAX_EVENTS_BEHIND, SessionLog
from bullpen.store.database import Database
from bullpen.store.events import EventStore
from support.sample_events import error_draft
from support.server import Server
from support.tcp_proxy import TcpProxy

CUTS = 1000 if os.environ.get("BULLPEN_FAULTS") == "full" else 100
FEWER_CUTS = CUTS // 5
FIRST_CUTS = 3  # of those: a client that gets nothing knocks less often
END = b"<end>"

# Counts aloud all the time, and writes down what it is told until it is told to end.
TALKER = """
import os, select, sys, tty
tty.setraw(0)
os.write(1, b"ready\\n")
count, heard = 0, b""
with open(sys.argv[1], "wb", buffering=0) as journal:
    while not heard.endswith(b"<end>"):
        if select.select([0], [], [], 0.002)[0]:
            data = os.read(0, 65536)
            journal.write(data)
            heard = (heard + data)[-5:]
        count += 1
        os.write(1, b"%d\\n" % count)
"""


@pytest.fixture
async def wire(server: Server) -> AsyncIterator[TcpProxy]:
    async with TcpProxy(server.port).running() as wire:
        yield wire


async def listen(terminal: Terminal, ready: asyncio.Event) -> list[Frame]:
    """Everything to the end; says when the program runs."""
    frames, start = [], b""
    async for frame in terminal:
        frames.append(frame)
        if not ready.is_set() and isinstance(frame, OutputFrame):
            start += frame.data
            if b"ready\n" in start:
                ready.set()
    return frames


async def speak(terminal: Terminal, wire: TcpProxy, chance: random.Random) -> bytes:
    """Types numbers until the wire was cut often enough; returns all that was typed."""
    typed = b""
    while wire.cuts < CUTS:
        batch = b"<%d>" % chance.randrange(10**6)
        typed += batch
        await terminal.write(batch)
        if chance.random() < 0.3:
            await terminal.flush()
    await terminal.write(END)
    return typed + END


async def test_a_terminal_that_is_cut_loses_and_doubles_nothing_either_way(
    server: Server, wire: TcpProxy, tmp_path: Path
) -> None:
    program, journal = tmp_path / "talker.py", tmp_path / "journal"
    program.write_text(TALKER)
    session = await server.new_session()
    worker = await server.new_terminal(session["id"])
    where, chance, ready = (session["id"], worker["id"]), random.Random(6), asyncio.Event()
    async with (
        asyncio.timeout(280),
        Client(wire.url, server.token) as client,
        client.terminal(*where, after=0) as terminal,
        asyncio.TaskGroup() as tasks,
    ):
        listening = tasks.create_task(listen(terminal, ready))
        await terminal.write(f"exec {sys.executable} {program} {journal}\n".encode())
        await ready.wait()
        wire.should_cut = lambda _, nth: wire.cuts < CUTS and chance.random() < (0.1 if nth else 0.01)
        typed = await speak(terminal, wire, chance)
        frames = await listening
    assert wire.cuts >= CUTS
    assert frames[-1] == ExitFrame(0, None)
    assert journal.read_bytes() == typed

    heard = b"".join(frame.data for frame in frames if isinstance(frame, OutputFrame))
    async with Client(server.url, server.token) as client:
        assert heard == b"".join([piece.data async for piece in client.output(*where)])
    counted = heard.split(b"ready\n", 1)[1].splitlines()
    assert counted == [b"%d" % number for number in range(1, len(counted) + 1)]


def cut_the_first_message(wire: TcpProxy, got: Sequence[object], chance: random.Random) -> None:
    """Cuts the wire in what comes right behind the handshake, and anywhere when something has come."""

    def scissors(direction: str, nth: int) -> bool:
        if not got:
            return wire.cuts < FIRST_CUTS and direction == "down" and nth == 1
        return wire.cuts < FEWER_CUTS and chance.random() < (0.04 if nth else 0.01)

    wire.should_cut = scissors


async def test_a_terminal_that_is_cut_in_its_history_goes_on_right_behind_it(
    server: Server, wire: TcpProxy, tmp_path: Path
) -> None:
    program = tmp_path / "talker.py"
    program.write_text(TALKER)
    session = await server.new_session()
    worker = await server.new_terminal(session["id"])
    where, ready = (session["id"], worker["id"]), asyncio.Event()
    got: list[OutputFrame | HistoryFrame] = []
    async with (
        asyncio.timeout(280),
        Client(server.url, server.token) as near,
        Client(wire.url, server.token) as far,
        near.terminal(*where, after=0) as typist,
        asyncio.TaskGroup() as tasks,
    ):
        tasks.create_task(listen(typist, ready))
        await typist.write(f"exec {sys.executable} {program} {tmp_path / 'journal'}\n".encode())
        await ready.wait()
        cut_the_first_message(wire, got, random.Random(7))
        async with far.terminal(*where) as terminal:
            async for frame in terminal:
                if isinstance(frame, OutputFrame | HistoryFrame):
                    got.append(frame)
                if wire.cuts == FEWER_CUTS:
                    await typist.write(END)
        stored = b"".join([piece.data async for piece in near.output(*where)])
    history, *output = got
    assert isinstance(history, HistoryFrame)
    assert (
        b"".join(frame.data for frame in output if isinstance(frame, OutputFrame)) == stored[history.offset :]
    )
    assert not any(isinstance(frame, HistoryFrame) for frame in output)


async def test_a_follower_that_is_cut_in_its_snapshot_gets_every_event_once(
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
        assert json.loads(await socket.recv())["type"] == "snapshot"
    got: list[Event] = []
    cut_the_first_message(wire, got, random.Random(8))
    async with (
        asyncio.timeout(280),
        Client(wire.url, server.token) as far,
        aclosing(far.follow(session["id"])) as events,
    ):
        async for event in events:
            got.append(event)
            if event.seq > MAX_EVENTS_BEHIND:
                if wire.cuts == FEWER_CUTS:
                    break
                await server.call("PATCH", f"/api/sessions/{session['id']}", json={"title": str(event.seq)})
    assert [event.seq for event in got] == list(range(1, len(got) + 1))
    assert [event.data["message"] for event in got[1 : MAX_EVENTS_BEHIND + 1]] == [
        str(n) for n in range(MAX_EVENTS_BEHIND)
    ]
