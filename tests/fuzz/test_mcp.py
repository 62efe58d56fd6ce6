"""Mutated lines on the standard input of a real `bullpen mcp`: it answers every request and keeps running."""

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st

from fuzz.conftest import FuzzedServer
from support.fuzzing import fuzz, mutated_bytes, mutated_json, replay

COMMAND = str(Path(sys.executable).parent / "bullpen")
SECONDS = 60.0
UNKNOWN = "4c0f1f0e-3a52-4a0e-9d0b-6a5f1b1d2c01"


def request(method: str, id: Any = 1, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return request("tools/call", name=name, arguments=arguments)


LINES: list[Any] = [
    request(
        "initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo={"name": "x", "version": "1"}
    ),
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}},
    request("tools/list"),
    call("list_sessions", query="a", active=True),
    call("list_agents"),
    call("start_session", agent="nosuch", directory="/tmp", prompt="hello", title="t"),
    call("prompt_session", session=UNKNOWN, prompt="hello"),
    call("wait_for_session", session=UNKNOWN, seconds=0),
    call("read_session", session=UNKNOWN, messages=1),
    [request("ping"), request("ping", 2)],
]


@st.composite
def inputs(draw: st.DrawFn) -> bytes:
    lines = [json.dumps(line).encode() for line in draw(st.lists(mutated_json(LINES, 2), max_size=6))]
    if draw(st.integers(0, 3)) == 0:
        lines.append(draw(mutated_bytes([json.dumps(line).encode() for line in LINES], 2)))
    return b"\n".join(lines) + b"\n"


class McpProcess:
    """A `bullpen mcp` process whose standard input the test writes."""

    def __init__(self, env: dict[str, str]) -> None:
        self.process = subprocess.Popen(
            [COMMAND, "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env
        )
        self._rest = b""
        self._count = 0

    def check(self, data: bytes) -> None:
        for answer in self.answers(data):
            assert ("result" in answer) != ("error" in answer), answer
        assert self.process.poll() is None

    def answers(self, data: bytes) -> list[dict[str, Any]]:
        """Send lines and then a ping; return all answers up to that of the ping."""
        self._count += 1
        mark = f"mark-{self._count}"
        assert self.process.stdin is not None
        self.process.stdin.write(data + json.dumps(request("ping", mark)).encode() + b"\n")
        self.process.stdin.flush()
        received = list[dict[str, Any]]()
        while not received or received[-1].get("id") != mark:
            received.append(json.loads(self._line()))
        return received

    def _line(self) -> bytes:
        assert self.process.stdout is not None
        deadline = time.monotonic() + SECONDS
        while b"\n" not in self._rest:
            ready, _, _ = select.select([self.process.stdout], [], [], max(0, deadline - time.monotonic()))
            assert ready, "nothing was answered"
            piece = os.read(self.process.stdout.fileno(), 1 << 16)
            assert piece, self.process.stderr and self.process.stderr.read().decode()
            self._rest += piece
        line, _, self._rest = self._rest.partition(b"\n")
        return line


@pytest.fixture
def mcp(fuzzed: FuzzedServer) -> Iterator[McpProcess]:
    this = McpProcess(fuzzed.server.environment() | {"BULLPEN_URL": fuzzed.server.url})
    yield this
    out, err = this.process.communicate(timeout=SECONDS)
    assert (this.process.returncode, err) == (0, b""), out[-500:]


def test_lines_that_once_failed_do_not_harm_mcp(mcp: McpProcess) -> None:
    replay("mcp", mcp.check)


def test_a_second_call_under_the_id_of_one_that_runs_is_refused(mcp: McpProcess) -> None:
    """With one id, both calls would share an entry in the table of calls, and one could not be cancelled."""
    line = json.dumps(call("read_session", session=UNKNOWN)).encode() + b"\n"
    answers = mcp.answers(line + line)
    assert [answer["error"]["code"] for answer in answers if answer["id"] == 1 and "error" in answer] == [
        -32600
    ]


def test_mutated_lines_do_not_harm_mcp(mcp: McpProcess, fuzzed: FuzzedServer) -> None:
    fuzz("mcp", inputs(), mcp.check, 100)
    fuzzed.check_log()
