"""R-06 for our own client: a terminal whose connection is cut again and again, both ways at once."""

import asyncio
import os
import random
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bullpen.client import Client, Exit, Frame, Output
from bullpen.client.terminal import Terminal
from support.server import Server
from support.wire import Wire

CUTS = 1000 if os.environ.get("BULLPEN_FAULTS") == "full" else 100
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
async def wire(server: Server) -> AsyncIterator[Wire]:
    async with Wire(server.port).laid() as wire:
        yield wire


async def listen(terminal: Terminal, ready: asyncio.Event) -> list[Frame]:
    """Everything to the end; says when the program runs."""
    frames, start = [], b""
    async for frame in terminal:
        frames.append(frame)
        if not ready.is_set() and isinstance(frame, Output):
            start += frame.data
            if b"ready\n" in start:
                ready.set()
    return frames


async def speak(terminal: Terminal, wire: Wire, chance: random.Random) -> bytes:
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
    server: Server, wire: Wire, tmp_path: Path
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
        wire.scissors = lambda _, nth: wire.cuts < CUTS and chance.random() < (0.1 if nth else 0.01)
        typed = await speak(terminal, wire, chance)
        frames = await listening
    assert wire.cuts >= CUTS
    assert frames[-1] == Exit(0, None)
    assert journal.read_bytes() == typed

    heard = b"".join(frame.data for frame in frames if isinstance(frame, Output))
    async with Client(server.url, server.token) as client:
        assert heard == b"".join([piece.data async for piece in client.output(*where)])
    counted = heard.split(b"ready\n", 1)[1].splitlines()
    assert counted == [b"%d" % number for number in range(1, len(counted) + 1)]
