"""A terminal after cuts and kills: every byte of output and every batch of input arrives once."""

import asyncio
import os
import random
import sys
from pathlib import Path

import pytest

from bullpen.client import ActivityFrame, Client, ExitFrame, Frame, HistoryFrame, OutputFrame
from bullpen.client.terminal import Terminal
from bullpen.domain.errors import Conflict, NotFound
from support.server import Server
from support.tcp_proxy import TcpProxy
from support.tui_session_client import TuiSessionClient, define_tui

FULL = os.environ.get("BULLPEN_FAULTS") == "full"
DEADLINE = 1800 if FULL else 200  # seconds

JOURNAL = """
import os, sys, tty
tty.setraw(0)
os.write(1, b"ready")
with open(sys.argv[1], "ab", buffering=0) as journal:
    while data := os.read(0, 65536):
        journal.write(data)
"""


async def new_terminal(server: Server) -> tuple[str, str]:
    session = await server.new_session()
    worker = await server.new_terminal(session["id"])
    return session["id"], worker["id"]


async def read_until(terminal: Terminal, text: bytes) -> bytes:
    """Return the output up to this text."""
    output = b""
    async for frame in terminal:
        if isinstance(frame, HistoryFrame | OutputFrame):
            output += frame.data
        if text in output:
            break
    return output


async def read_to_the_end(terminal: Terminal) -> list[Frame]:
    return [frame async for frame in terminal]


async def test_every_change_of_an_agents_activity_is_received(client: Client, server: Server) -> None:
    await define_tui(server)
    talk = await TuiSessionClient.begin(server)
    worker = await talk.worker()
    async with asyncio.timeout(60), client.terminal(talk.id, worker["id"]) as terminal:
        activities: list[str] = []
        async for frame in terminal:
            if not isinstance(frame, ActivityFrame):
                continue
            activities.append(frame.activity)
            assert frame.why
            if activities == ["idle"]:
                await talk.prompt("[[work 0.6]] [[ask]]")
            if frame.activity == "asking":
                break
    assert activities == ["idle", "active", "asking"]


async def test_history_comes_first_and_then_output(client: Client, server: Server) -> None:
    ids = await new_terminal(server)
    async with asyncio.timeout(60), client.terminal(*ids) as terminal:
        async for frame in terminal:
            if isinstance(frame, HistoryFrame | OutputFrame):
                assert isinstance(frame, HistoryFrame)
                break
        await terminal.write(b"echo $((20 + 22))\n")
        assert b"42\r\n" in await read_until(terminal, b"42\r\n")


async def test_the_exit_is_the_last_frame_and_later_input_is_refused(client: Client, server: Server) -> None:
    ids = await new_terminal(server)
    async with asyncio.timeout(60), client.terminal(*ids) as terminal:
        await terminal.write(b"exit 7\n")
        frames = await read_to_the_end(terminal)
        assert frames[-1] == ExitFrame(7, None)
        await terminal.write(b"more")
        with pytest.raises(Conflict, match="ended"):
            await terminal.flush()


async def test_the_client_sets_the_size(client: Client, server: Server) -> None:
    ids = await new_terminal(server)
    async with asyncio.timeout(60), client.terminal(*ids) as terminal:
        terminal.resize(111, 37)
        await terminal.write(b"stty size\n")
        assert b"37 111" in await read_until(terminal, b"37 111")


async def test_an_unknown_worker_is_an_error(client: Client, server: Server) -> None:
    session = await server.new_session()
    async with asyncio.timeout(60), client.terminal(session["id"], "missing") as terminal:
        with pytest.raises(NotFound):
            await read_to_the_end(terminal)


@pytest.mark.timeout(DEADLINE + 60)
async def test_output_is_complete_after_cuts(
    cut_client: Client, client: Client, wire: TcpProxy, server: Server
) -> None:
    ids = await new_terminal(server)
    cuts = 300 if FULL else 30
    generator = random.Random(5)
    async with asyncio.timeout(DEADLINE), cut_client.terminal(*ids, after=0) as terminal:
        await terminal.write(b"seq 1 200000; exit\n")
        wire.should_cut = lambda direction, nth: (
            direction == "down" and nth > 0 and wire.cuts < cuts and generator.random() < 0.2
        )
        frames = await read_to_the_end(terminal)
    stream = b"".join(frame.data for frame in frames if isinstance(frame, OutputFrame))
    stored = b"".join([piece.data async for piece in client.output(*ids)])
    assert wire.cuts > 10
    assert not any(isinstance(frame, HistoryFrame) for frame in frames)
    assert stream == stored
    assert b"\r\n".join(b"%d" % number for number in range(1, 200001)) in stream


@pytest.mark.timeout(DEADLINE + 60)
async def test_each_batch_of_input_is_read_once_after_cuts(
    cut_client: Client, wire: TcpProxy, server: Server, tmp_path: Path
) -> None:
    ids = await new_terminal(server)
    journal = tmp_path / "journal"
    (tmp_path / "journal.py").write_text(JOURNAL)
    generator = random.Random(9)
    batches = [b"<%d>" % number for number in range(2000 if FULL else 300)]
    async with asyncio.timeout(DEADLINE), cut_client.terminal(*ids) as terminal:
        await terminal.write(f"{sys.executable} {tmp_path}/journal.py {journal}\n".encode())
        await read_until(terminal, b"ready")
        wire.should_cut = lambda _direction, nth: generator.random() < (0.1 if nth else 0.01)
        for batch in batches:
            await terminal.write(batch)
            if generator.random() < 0.3:
                await terminal.flush()
        await terminal.flush()
    assert wire.cuts > 10
    await check_journal(journal, b"".join(batches))


@pytest.mark.timeout(DEADLINE + 60)
async def test_each_batch_of_input_is_read_once_after_kills_of_the_server(
    client: Client, server: Server, tmp_path: Path
) -> None:
    ids = await new_terminal(server)
    journal = tmp_path / "journal"
    (tmp_path / "journal.py").write_text(JOURNAL)
    written: list[bytes] = []
    stopped = asyncio.Event()

    async def type_until_stopped(terminal: Terminal) -> None:
        while not stopped.is_set():
            written.append(b"<%d>" % len(written))
            await terminal.write(written[-1])
            await asyncio.sleep(0.002)
        await terminal.flush()

    async with asyncio.timeout(DEADLINE), client.terminal(*ids) as terminal:
        await terminal.write(f"{sys.executable} {tmp_path}/journal.py {journal}\n".encode())
        await read_until(terminal, b"ready")
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(type_until_stopped(terminal))
            for _ in range(20 if FULL else 3):
                await server.restart()
            stopped.set()
    await check_journal(journal, b"".join(written))


async def check_journal(journal: Path, expected: bytes) -> None:
    """Check that the program has read exactly this input. It reads a moment after the keeper accepted it."""
    async with asyncio.timeout(60):
        while len(journal.read_bytes()) < len(expected):
            await asyncio.sleep(0.01)
    assert journal.read_bytes() == expected


async def test_an_exit_during_a_restart_is_received_afterwards(client: Client, server: Server) -> None:
    ids = await new_terminal(server)
    async with asyncio.timeout(60), client.terminal(*ids) as terminal:
        await terminal.write(b"echo rea''dy; read line; exit 5\n")
        await read_until(terminal, b"ready")
        await terminal.write(b"go\n")
        await terminal.flush()
        await server.restart()
        assert (await read_to_the_end(terminal))[-1] == ExitFrame(5, None)
