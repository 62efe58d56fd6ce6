"""One agent that talks, and many who watch: how late its events come, and what that costs.

    .venv/bin/python bench/viewers.py [--quick]

The agent says a thing a thousand times a second, each with the time it was said. Viewers follow the session's
socket as a page does; some read slowly, some not at all. Late is counted from the agent's mouth to the eye of
twenty viewers, spread over the crowd in the order they came. The crowd is read by one process on the same
machine, as a browser is not: those who are only counted read twenty times a second, so that they take little
of the cores the server, the keeper and the agent share with them. What the agent takes is not the server's.

Then the server is killed and started again, with viewers of many sessions. They come back, fifty at a time,
each with the number of the last event it has; every session has one more then. It ends when all have it.
"""

import argparse
import json
import os
import platform
import re
import selectors
import sys
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle
from pathlib import Path
from statistics import quantiles

from harness.processes import cpu_seconds, memory_bytes
from harness.report import Results, Row, Target, table, values_table, verdicts
from harness.websocket import TEXT, WebSocket
from systems.bullpen import Bullpen

OURS = "Bullpen"
RATE, SECONDS, QUICK_SECONDS = 1000, 10, 2
SESSIONS, QUICK_SESSIONS, EACH = 100, 10, 5  # what is watched over a restart, and by how many
AT_ONCE = 50  # viewers that come back
LOOKED_AT = 20  # viewers whose every event is timed
COUNTED_EVERY, PARTS = 0.05, 10  # seconds between two looks at the others, which take turns
SIP, SIP_EVERY = 2 << 10, 0.1  # bytes a slow viewer reads, and how often
BUFFER = 256 << 10
AT = re.compile(rb'"at":(\d+)')
TALKER = Path(__file__).parent / "children" / "talker.py"

ROWS = [
    Row("late 1", "1 viewer, p99", "ms"),
    Row("late 10", "10 viewers, p99", "ms"),
    Row("late 100", "100 viewers, p99", "ms", [Target(15)]),
    Row("cores 100", "100 viewers, server and keeper", "cores", [Target(0.6)]),
    Row("late 500", "500 viewers, 50 slow and 10 stopped, p99", "ms", [Target(50)]),
    Row("cores 500", "the same, server and keeper", "cores"),
    Row("memory 500", "the same, more memory than before", "MB", [Target(200)]),
    Row("restart", "a restart, until all viewers of many sessions are at the head", "ms", [Target(10_000)]),
]


def main() -> int:
    parser = argparse.ArgumentParser(description="One agent that talks, and many who watch.")
    parser.add_argument("--quick", action="store_true", help="for two seconds, to see whether it works")
    quick = parser.parse_args().quick
    seconds, sessions = (QUICK_SECONDS, QUICK_SESSIONS) if quick else (SECONDS, SESSIONS)
    results: Results = defaultdict(lambda: defaultdict(list))
    with Bullpen() as system:
        pids = system.pids()  # before there is an agent
        body = {"name": "Talker", "kind": "acp", "command": [sys.executable, str(TALKER)]}
        system.call("PUT", "/api/agents/talker", body)
        for many, slow, stopped in ((1, 0, 0), (10, 0, 0), (100, 0, 0), (440, 50, 10)):
            figures = watch(system, pids, many, slow, stopped, RATE * seconds)
            for name, value in figures.items():
                results[f"{name} {many + slow + stopped}"][OURS].append(value)
    with Bullpen() as system:
        results["restart"][OURS].append(restart(system, sessions))
    print(f"{platform.platform()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the end")
    print(f"{RATE} events a second for {seconds} s")
    print(f"{sessions} sessions and {sessions * EACH} viewers at the restart\n")
    print(values_table(ROWS, [OURS], results))
    print(
        "\n"
        + table(["target", ""], [[row.title, verdicts(row, OURS, results)] for row in ROWS if row.targets])
    )
    return 0


def watch(
    system: Bullpen, pids: list[int], many: int, slow: int, stopped: int, count: int
) -> dict[str, float]:
    """One talk with so many viewers; every event must reach every one who reads."""
    order = {"type": "quick", "locationPath": str(system.home), "agentId": "talker"}
    session = system.call("POST", "/api/sessions", order)["id"]
    path = f"/ws/session/{session}"
    apart = max(1, many // LOOKED_AT)
    viewers = [Viewer(system, path, n % apart == 0, count) for n in range(many)]
    sippers = [Viewer(system, path, False, count) for _ in range(slow)]
    asleep = [Viewer(system, path, False, count) for _ in range(stopped)]
    memory, cpu, began = memory_bytes(pids)[0], cpu_seconds(pids), time.monotonic()
    system.call("POST", f"{path.replace('/ws/session', '/api/sessions')}/prompt", {"text": f"{RATE} {count}"})
    look(viewers, sippers, began + 60 + count / RATE)
    seconds = time.monotonic() - began
    figures = {
        "late": quantiles([late for viewer in viewers for late in viewer.late], n=100)[98],
        "cores": (cpu_seconds(pids) - cpu) / seconds,
        "memory": (memory_bytes(pids)[0] - memory) / 1e6,
    }
    for viewer in (*viewers, *sippers, *asleep):
        viewer.socket.close()
    system.call("DELETE", f"/api/sessions/{session}")
    return figures


def restart(system: Bullpen, many: int) -> float:
    """Milliseconds from the kill of a server until every viewer has the last event of its session."""
    sessions = [system.new_session() for _ in range(many)]
    heads = {session: head_of(system, session) for session in sessions}
    crowd = [session for session in sessions for _ in range(EACH)]
    with ThreadPoolExecutor(AT_ONCE) as threads:
        before = list(threads.map(lambda session: follow(system, session, 0, heads[session]), crowd))
        began = time.perf_counter()
        system.restart()
        for session in sessions:
            system.call("PATCH", f"/api/sessions/{session}", {"title": "after the restart"})
        after = list(
            threads.map(lambda session: follow(system, session, heads[session], heads[session] + 1), crowd)
        )
        took = (time.perf_counter() - began) * 1000
    for socket in (*before, *after):
        socket.close()
    return took


def head_of(system: Bullpen, session: str) -> int:
    head: int = system.call("GET", f"/api/sessions/{session}")["lastSeq"]
    return head


def follow(system: Bullpen, session: str, after: int, head: int) -> WebSocket:
    """A viewer that has every event from one number to another."""
    client = WebSocket(system.port, f"/ws/session/{session}", system.headers)
    client.send(TEXT, json.dumps({"type": "subscribe", "after": after}).encode())
    while after < head:
        for event in json.loads(bytes(client.receive()[1])).get("events", []):
            if event["seq"] != after + 1:
                raise SystemExit(f"a viewer got {event['seq']} after {after}")
            after += 1
    return client


class Viewer:
    """Counts events as they come; some viewers also note how late each is."""

    def __init__(self, system: Bullpen, path: str, timed: bool, count: int) -> None:
        client = WebSocket(system.port, path, system.headers)
        client.send(TEXT, b'{"type":"subscribe","after":0}')
        self.socket = client.socket
        self.socket.setblocking(False)
        self.timed = timed
        self.late: list[float] = []
        self._left = count
        self._unread = bytearray()

    def read(self, most: int = BUFFER) -> bool:
        """Whether all has come."""
        try:
            self._unread += self.socket.recv(most)
        except BlockingIOError:
            return self._left <= 0
        now = time.monotonic_ns()
        end = whole_frames(self._unread)
        if self.timed:
            found = AT.findall(self._unread, 0, end)
            self.late += [(now - int(at)) / 1e6 for at in found]
            self._left -= len(found)
        else:
            self._left -= self._unread.count(b'"at":', 0, end)
        del self._unread[:end]
        return self._left <= 0


def whole_frames(data: bytearray) -> int:
    """Where the last whole frame ends."""
    start = 0
    while start + 2 <= len(data):
        length, header = data[start + 1], 2
        if length >= 126:
            header = 4 if length == 126 else 10
            length = int.from_bytes(data[start + 2 : start + header], "big")
        if start + header + length > len(data) or start + header > len(data):
            break
        start += header + length
    return start


def look(viewers: list[Viewer], sippers: list[Viewer], deadline: float) -> None:
    """Until everyone who reads has seen everything."""
    counted = [viewer for viewer in viewers if not viewer.timed]
    waiting = set(viewers)
    selector = selectors.DefaultSelector()
    for viewer in viewers:
        if viewer.timed:
            selector.register(viewer.socket, selectors.EVENT_READ, viewer)
    parts = cycle([counted[part::PARTS] for part in range(PARTS)])
    count_at = sip_at = 0.0
    while waiting:
        ready = [key.data for key, _ in selector.select(COUNTED_EVERY / PARTS)]
        now = time.monotonic()
        if now >= count_at:
            count_at = now + COUNTED_EVERY / PARTS
            ready += next(parts)
        waiting.difference_update([viewer for viewer in ready if viewer.read()])
        if now >= sip_at:
            sip_at = now + SIP_EVERY
            for sipper in sippers:
                sipper.read(SIP)
        if now > deadline:
            raise SystemExit(f"{len(waiting)} viewers have not seen everything")


if __name__ == "__main__":
    sys.exit(main())
