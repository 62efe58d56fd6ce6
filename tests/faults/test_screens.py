"""The screen that a new viewer gets is correct, also after a kill; replies and hostile output are handled."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from bullpen.workers.ghostty import EmulatedTerminal
from support.server import Server
from support.terminal_viewer import TerminalViewer, TerminalWriter

MODES = (1, 7, 25, 1000, 1002, 1003, 1006, 1049, 2004)

QUERY_PROGRAM = """
import os, sys, tty, select, time
tty.setraw(0)
os.write(1, b"ready")
while True:
    if select.select([0], [], [], 60)[0]:
        data = os.read(0, 65536)
        with open(sys.argv[1], "ab") as journal:
            journal.write(data)
        if data.endswith(b"!"):
            os.write(1, b"\\x1b[6n\\x1b[c\\x1b[?2004$p\\x1bP$qm\\x1b\\\\asked")
"""

HOSTILE = [
    *(b"\x1b[2147483647" + final for final in (b"b", b"S", b"T", b"L", b"M", b"I", b"Z", b"@", b"P", b"X")),
    b"\x1bP" + b"q" * 1_000_000,
    b"\x1b\\",
    b"\x1b]2;" + b"t" * 1_000_000 + b"\x07",
    b"\x1b]52;c;aGVsbG8=\x07",
    b"\x1b]8;;javascript:alert(1)\x07link\x1b]8;;\x07",
    "e\u0301".encode() * 100_000,
    b"\xff\xfe\x00\x80" * 10_000,
]


async def history(server: Server, session_id: str, worker_id: str) -> dict[str, Any]:
    """Return the first message that a new viewer gets."""
    async with server.socket(f"/ws/session/{session_id}/worker/{worker_id}") as ws:
        message: dict[str, Any] = json.loads(await asyncio.wait_for(ws.recv(), 60))
    assert message["type"] == "history"
    return message


async def stable_screen(
    server: Server, session_id: str, worker_id: str, text: str
) -> tuple[EmulatedTerminal, int]:
    """Return the terminal of a new viewer and its offset, once it shows the text and no output follows."""
    last = -1
    async with asyncio.timeout(60):
        while True:
            message = await history(server, session_id, worker_id)
            terminal = EmulatedTerminal(message["cols"], message["rows"])
            assert terminal.feed(message["data"].encode()) == [], "the history must not contain a query"
            if text in terminal.text() and message["offset"] == last:
                return terminal, last
            last = message["offset"]
            await asyncio.sleep(0.1)


def visible_state(terminal: EmulatedTerminal) -> tuple[Any, ...]:
    return terminal.text(), terminal.cursor, {mode: terminal.mode(mode) for mode in MODES}


@pytest.mark.parametrize(
    ("command", "text", "typed"),
    [
        ("vim -u NONE -N numbers", "28", ":set number\\n20G"),
        ("less numbers", "20", "5j"),
        ("TERM=xterm htop -d 600 -C", "Load average", ""),
        (r"printf 'half \033[3'; read nothing", "half", ""),
    ],
    ids=["vim", "less", "htop", "a shell in the middle of an escape sequence"],
)
async def test_a_new_viewer_sees_the_same_screen_after_a_kill(
    server: Server, workspace: Path, command: str, text: str, typed: str
) -> None:
    (workspace / "numbers").write_text("".join(f"{number}\n" for number in range(500)))
    session = await server.new_session()
    worker = await server.new_terminal(session["id"], cols=100, rows=30)
    writer = TerminalWriter(server, session["id"], worker["id"], "writer")
    await writer.type(f"{command}\n")
    await stable_screen(server, session["id"], worker["id"], text)
    if typed:
        await writer.type(typed.replace("\\n", "\n"))
    until = -1
    offset = 0
    while until != offset:  # repeat if the program printed something meanwhile
        before, offset = await stable_screen(server, session["id"], worker["id"], text)
        await server.restart()
        after, until = await stable_screen(server, session["id"], worker["id"], text)
    assert visible_state(after) == visible_state(before)


async def test_attaching_sends_no_input_and_a_live_query_is_answered_once(
    server: Server, workspace: Path
) -> None:
    program, journal = workspace / "query.py", workspace / "journal"
    program.write_text(QUERY_PROGRAM)
    session = await server.new_session()
    worker = await server.new_terminal(session["id"])
    writer = TerminalWriter(server, session["id"], worker["id"], "writer")
    await writer.type(f"stty -echo; exec {sys.executable} {program} {journal}\n")
    viewer = TerminalViewer(server, session["id"], worker["id"])
    async with viewer.watching():
        await viewer.until_seen(b"ready")
        await writer.type("!")
        await viewer.until_seen(b"asked")
        answers = await _read_journal_when(
            journal, lambda data: data.count(b"\x1b") >= 5 and data.endswith(b"\x1b\\")
        )
        assert answers.startswith(b"!")
        assert answers.count(b"R") == 1 and answers.count(b"\x1b") == 5, answers
    for _ in range(3):
        await history(server, session["id"], worker["id"])
    await server.restart()
    for _ in range(3):
        await history(server, session["id"], worker["id"])
    await writer.type("end")
    assert await _read_journal_when(journal, lambda data: data.endswith(b"end")) == answers + b"end"


async def _read_journal_when(path: Path, complete: Any) -> bytes:
    async with asyncio.timeout(60):
        while not path.exists() or not complete(path.read_bytes()):
            await asyncio.sleep(0.02)
    return path.read_bytes()


async def test_hostile_output_leaves_the_server_and_other_terminals_unharmed(
    server: Server, workspace: Path
) -> None:
    session = await server.new_session()
    hostile = await server.new_terminal(session["id"])
    other = await server.new_terminal(session["id"])
    for number, data in enumerate(HOSTILE):
        (workspace / f"{number:02d}.bin").write_bytes(data)
    hostile_writer = TerminalWriter(server, session["id"], hostile["id"], "hostile")
    await hostile_writer.type("stty -echo; cat *.bin; printf '\\033\\\\'; echo; echo all-done\n")
    viewer, other_viewer = (
        TerminalViewer(server, session["id"], hostile["id"]),
        TerminalViewer(server, session["id"], other["id"]),
    )
    writer = TerminalWriter(server, session["id"], other["id"], "writer")
    async with viewer.watching(), other_viewer.watching():
        for number in range(10):
            await writer.type(f"echo $(({number}+1000))\n")
            async with asyncio.timeout(60):
                await other_viewer.until_seen(b"%d\r\n" % (number + 1000))
        await viewer.until_seen(b"all-done")
    await stable_screen(server, session["id"], hostile["id"], "all-done")
    assert server.process is not None and server.process.poll() is None
