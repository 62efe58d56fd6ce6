"""Measure the delay and CPU of events from one agent to many viewers, also after a restart.

    .venv/bin/python bench/viewers.py [--quick]

The agent sends 1000 updates a second, each with the time of its sending. Viewers follow the socket of the
session as a page does; some read slowly, some do not read. The delay is measured from the sending to the
reading by twenty viewers, spread evenly over all viewers. One process on the same machine reads for all
viewers. Viewers that are not timed are read only twenty times a second, so that they use little of the cores
that server, keeper and agent need. The CPU of the agent is not counted.

Then a server with viewers of many sessions is killed and restarted. The viewers reconnect, fifty at a time,
each with the seq of its last event, and every session gets one more event. The measurement ends when all
viewers have it.
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
SESSIONS, QUICK_SESSIONS, EACH = 100, 10, 5  # sessions at the restart, and the viewers of each
RECONNECTING = 50  # viewers that reconnect at the same time
TIMED_VIEWERS = 20  # viewers for which the delay of every event is measured
COUNT_SECONDS, PARTS = 0.05, 10  # between two reads of the other viewers, which are read in parts
SLOW_BYTES, SLOW_SECONDS = 2 << 10, 0.1  # that a slow viewer reads, and between its reads
BUFFER = 256 << 10
AT = re.compile(rb'"at":(\d+)')
STEADY_AGENT = Path(__file__).parent / "children" / "steady_agent.py"

ROWS = [
    Row("late 1", "1 viewer, p99", "ms"),
    Row("late 10", "10 viewers, p99", "ms"),
    Row("late 100", "100 viewers, p99", "ms", [Target(15)]),
    Row("cores 100", "100 viewers, server and keeper", "cores", [Target(0.6)]),
    Row("late 500", "500 viewers, 50 slow and 10 stopped, p99", "ms", [Target(50)]),
    Row("cores 500", "500 viewers, server and keeper", "cores"),
    Row("memory 500", "500 viewers, additional memory", "MB", [Target(200)]),
    Row("restart", "restart, until all viewers of many sessions have every event", "ms", [Target(10_000)]),
]


def main() -> int:
    parser = argparse.ArgumentParser(description="Measure events from one agent to many viewers.")
    parser.add_argument("--quick", action="store_true", help="two seconds, to check that the benchmark works")
    quick = parser.parse_args().quick
    seconds, sessions = (QUICK_SECONDS, QUICK_SESSIONS) if quick else (SECONDS, SESSIONS)
    results: Results = defaultdict(lambda: defaultdict(list))
    with Bullpen() as system:
        pids = system.pids()  # before the agent starts
        body = {"name": "Steady", "kind": "acp", "command": [sys.executable, str(STEADY_AGENT)]}
        system.call("PUT", "/api/agents/steady", body)
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
    """Prompt the agent once with these viewers; return the figures. Reading viewers must get every event."""
    order = {"type": "quick", "locationPath": str(system.home), "agentId": "steady"}
    session = system.call("POST", "/api/sessions", order)["id"]
    path = f"/ws/session/{session}"
    apart = max(1, many // TIMED_VIEWERS)
    viewers = [Viewer(system, path, n % apart == 0, count) for n in range(many)]
    slow_viewers = [Viewer(system, path, False, count) for _ in range(slow)]
    stopped_viewers = [Viewer(system, path, False, count) for _ in range(stopped)]
    memory, cpu, began = memory_bytes(pids)[0], cpu_seconds(pids), time.monotonic()
    system.call("POST", f"{path.replace('/ws/session', '/api/sessions')}/prompt", {"text": f"{RATE} {count}"})
    read_until_complete(viewers, slow_viewers, began + 60 + count / RATE)
    seconds = time.monotonic() - began
    figures = {
        "late": quantiles([late for viewer in viewers for late in viewer.late], n=100)[98],
        "cores": (cpu_seconds(pids) - cpu) / seconds,
        "memory": (memory_bytes(pids)[0] - memory) / 1e6,
    }
    for viewer in (*viewers, *slow_viewers, *stopped_viewers):
        viewer.socket.close()
    system.call("DELETE", f"/api/sessions/{session}")
    return figures


def restart(system: Bullpen, many: int) -> float:
    """Return the milliseconds from the kill of a server until every viewer has the last event."""
    sessions = [system.new_session() for _ in range(many)]
    heads = {session: head_of(system, session) for session in sessions}
    watched = [session for session in sessions for _ in range(EACH)]
    with ThreadPoolExecutor(RECONNECTING) as threads:
        before = list(threads.map(lambda session: follow(system, session, 0, heads[session]), watched))
        began = time.perf_counter()
        system.restart()
        for session in sessions:
            system.call("PATCH", f"/api/sessions/{session}", {"title": "after the restart"})
        after = list(
            threads.map(lambda session: follow(system, session, heads[session], heads[session] + 1), watched)
        )
        took = (time.perf_counter() - began) * 1000
    for socket in (*before, *after):
        socket.close()
    return took


def head_of(system: Bullpen, session: str) -> int:
    head: int = system.call("GET", f"/api/sessions/{session}")["lastSeq"]
    return head


def follow(system: Bullpen, session: str, after: int, head: int) -> WebSocket:
    """Connect a viewer and read every event after one seq up to another."""
    client = WebSocket(system.port, f"/ws/session/{session}", system.headers)
    client.send(TEXT, json.dumps({"type": "subscribe", "after": after}).encode())
    while after < head:
        for event in json.loads(bytes(client.receive()[1])).get("events", []):
            if event["seq"] != after + 1:
                raise SystemExit(f"a viewer got {event['seq']} after {after}")
            after += 1
    return client


class Viewer:
    """Counts the events that it reads; a timed viewer also records the delay of each."""

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
        """Read up to `most` bytes; return whether every event was read."""
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
    """Return the end of the last complete frame."""
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


def read_until_complete(viewers: list[Viewer], slow_viewers: list[Viewer], deadline: float) -> None:
    """Read until every viewer that is not slow or stopped has every event."""
    counted = [viewer for viewer in viewers if not viewer.timed]
    waiting = set(viewers)
    selector = selectors.DefaultSelector()
    for viewer in viewers:
        if viewer.timed:
            selector.register(viewer.socket, selectors.EVENT_READ, viewer)
    parts = cycle([counted[part::PARTS] for part in range(PARTS)])
    count_at = slow_at = 0.0
    while waiting:
        ready = [key.data for key, _ in selector.select(COUNT_SECONDS / PARTS)]
        now = time.monotonic()
        if now >= count_at:
            count_at = now + COUNT_SECONDS / PARTS
            ready += next(parts)
        waiting.difference_update([viewer for viewer in ready if viewer.read()])
        if now >= slow_at:
            slow_at = now + SLOW_SECONDS
            for viewer in slow_viewers:
                viewer.read(SLOW_BYTES)
        if now > deadline:
            raise SystemExit(f"{len(waiting)} viewers have not read every event")


if __name__ == "__main__":
    sys.exit(main())
