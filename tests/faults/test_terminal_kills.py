"""The server is killed while terminals print and users type: no byte is lost, repeated or reordered."""

import asyncio
import random
import sys
from pathlib import Path

from support.server import Server, has_ended
from support.terminal_viewer import TerminalViewer, TerminalWriter

BURST_PROGRAM = """
import sys, os
number = 0
os.write(1, b"ready\\n")
for line in sys.stdin:
    until = number + int(line)
    pieces = []
    while number < until:
        pieces.append(b"%09d the quick brown fox jumps over the lazy dog\\n" % number)
        number += 1
    data = memoryview(b"".join(pieces))
    while data:
        data = data[os.write(1, data):]
"""

JOURNAL_PROGRAM = """
import sys, os, tty
tty.setraw(0)
os.write(1, b"ready")
journal = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
while data := os.read(0, 65536):
    os.write(journal, data)
"""

LINE = len(b"%09d the quick brown fox jumps over the lazy dog\r\n" % 0)


async def run_in(server: Server, worker: dict[str, str], program: Path, *arguments: str) -> TerminalWriter:
    """Replace the shell of a terminal by a Python program; return the writer for its terminal."""
    writer = TerminalWriter(server, worker["sessionId"], worker["id"], "writer")
    words = " ".join([sys.executable, str(program), *arguments])
    await writer.type(f"stty -echo; PS1=; exec {words}\n")
    return writer


async def test_every_viewer_gets_every_byte_once_while_the_server_is_killed(
    server: Server, workspace: Path, faults: int
) -> None:
    program = workspace / "burst.py"
    program.write_text(BURST_PROGRAM)
    session = await server.new_session()
    worker = await server.new_terminal(session["id"])
    writer = await run_in(server, worker, program)
    lines = 40 * (1 << 20) // LINE // faults  # 40 MiB together: less than a spool keeps
    fast = TerminalViewer(server, session["id"], worker["id"])
    slow = TerminalViewer(server, session["id"], worker["id"], max_read_delay=0.02)
    stopped = TerminalViewer(server, session["id"], worker["id"])
    async with fast.watching(), slow.watching(), stopped.watching():
        await fast.until_seen(b"ready\r\n")
        start = fast.data.index(b"ready\r\n") + len(b"ready\r\n")
        stopped.reading.clear()
        for kill in range(1, faults + 1):
            await writer.type(f"{lines}\n")
            await fast.until(start + ((kill - 1) * lines + random.randrange(lines)) * LINE)
            await server.restart()
        expected = b"".join(
            b"%09d the quick brown fox jumps over the lazy dog\r\n" % number
            for number in range(lines * faults)
        )
        stopped.reading.set()
        for viewer in (fast, slow, stopped):
            await viewer.until(start + len(expected))
    for viewer in (fast, slow, stopped):
        assert viewer.data[start:] == expected
        assert viewer.data == fast.data
    spool = await server.http.get(f"/api/sessions/{session['id']}/workers/{worker['id']}/output")
    assert spool.content == fast.data
    after = await server.worker_in(session["id"], worker["id"], "active")
    assert after["pid"] == worker["pid"]


async def test_input_typed_while_the_server_is_killed_reaches_the_child_once_and_in_order(
    server: Server, workspace: Path, faults: int
) -> None:
    program, journal = workspace / "reader.py", workspace / "journal"
    program.write_text(JOURNAL_PROGRAM)
    session = await server.new_session()
    worker = await server.new_terminal(session["id"])
    writer = await run_in(server, worker, program, str(journal))
    viewer = TerminalViewer(server, session["id"], worker["id"])
    async with viewer.watching():
        await viewer.until_seen(b"ready")
    batches = [f"{number:06d} " for number in range(faults * 20)]

    async def type_all() -> None:
        for first in range(0, len(batches), 5):
            await writer.type(*batches[first : first + 5])

    typing = asyncio.create_task(type_all())
    for _ in range(faults):
        await asyncio.sleep(random.uniform(0, 0.1))
        await server.restart()
    await typing
    async with asyncio.timeout(60):
        while len(journal.read_bytes()) < 7 * len(batches):
            await asyncio.sleep(0.01)
    assert journal.read_text() == "".join(batches)


async def test_the_exit_of_a_child_while_no_server_ran_is_reported_after_its_last_byte(
    server: Server, workspace: Path
) -> None:
    session = await server.new_session()
    ends = {"exit 7": (7, None), "kill -15 $$": (None, "SIGTERM")}
    go = workspace / "go"
    workers, pids = {}, []
    for command, end in ends.items():
        worker = await server.new_terminal(session["id"])
        writer = TerminalWriter(server, session["id"], worker["id"], "writer")
        wait = f"until [ -e {go} ]; do sleep 0.02; done"
        await writer.type(f"trap - TERM; exec sh -c '{wait}; echo last; {command}'\n")
        workers[worker["id"]] = end
        pids.append(worker["pid"])
    await server.kill()
    assert not any(map(has_ended, pids))
    go.touch()
    async with asyncio.timeout(60):
        while not all(map(has_ended, pids)):
            await asyncio.sleep(0.01)
    await server.start()
    for worker_id, (code, signal) in workers.items():
        worker = await server.worker_in(session["id"], worker_id, "exited")
        assert (worker["exitCode"], worker["signal"]) == (code, signal)
        viewer = TerminalViewer(server, session["id"], worker_id)
        async with viewer.watching():
            message = await viewer.until_exit()
            assert (message["exitCode"], message["signal"]) == (code, signal)
            assert viewer.data.endswith(b"last\r\n")
    events = (await server.call("GET", f"/api/sessions/{session['id']}/events"))["events"]
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
