"""Bullpen as a browser uses it: terminals are created by REST, output comes in binary frames with offsets.

Server and keeper are counted together, with recording on.
"""

import json
import os
import secrets
import signal
import sys
import time
from contextlib import suppress
from http.client import HTTPConnection
from importlib.metadata import version
from pathlib import Path
from typing import Any

from harness.processes import START_SECONDS, Server, environment, processes_of
from harness.websocket import BINARY, SILENCE, TEXT, WebSocket
from systems.system import System, Terminal

COMMAND = Path(sys.executable).parent / "bullpen"


class OffsetTerminal(Terminal):
    """Sends no acknowledgements, since the peers have none; so it gets every byte, also on a slow machine."""

    def __init__(self, system: "Bullpen", worker: str, after: int | None = None) -> None:
        """Attach to a terminal; with `after`, continue at this offset."""
        self.system = system
        self.worker = worker
        path = f"/ws/session/{system.session}/worker/{worker}?format=binary&client={secrets.token_hex(8)}"
        self.socket = WebSocket(
            system.port, path if after is None else f"{path}&after={after}", system.headers
        )
        self.attached = after is not None
        self.typed = 0
        self.offset = after or 0

    def _send(self, message: dict[str, Any]) -> None:
        self.socket.send(TEXT, json.dumps(message).encode())

    def type(self, data: bytes) -> None:
        self.typed += 1
        self._send({"type": "input", "n": self.typed, "data": data.decode()})

    def read(self) -> bytes | memoryview:
        while True:
            opcode, payload = self.socket.receive()
            if opcode == BINARY:
                return self._output(payload)
            message = json.loads(bytes(payload))
            if message["type"] == "history":
                return self._history(message)
            if message["type"] in ("error", "exit"):
                raise RuntimeError(f"the terminal sent {message}")

    def _output(self, payload: memoryview) -> memoryview:
        offset = int.from_bytes(payload[:8], "big")
        if offset != self.offset:
            raise RuntimeError(f"output at {offset}, expected {self.offset}")
        self.offset += len(payload) - 8
        return payload[8:]

    def _history(self, message: dict[str, Any]) -> bytes:
        """Return the screen of the first history; a later one replaces output that was skipped."""
        screen: str = "" if self.attached else message["data"]
        if self.attached:
            self.skipped += message["offset"] - self.offset
        self.attached = True
        self.offset = message["offset"]
        return screen.encode()

    def close(self) -> None:
        self.socket.close()
        self.system.call("DELETE", f"/api/sessions/{self.system.session}/workers/{self.worker}")


class Bullpen(System):
    name = "Bullpen"
    runs_agents = True
    session: str

    @classmethod
    def missing(cls) -> str | None:
        return None if COMMAND.exists() else f"no command at {COMMAND}"

    @classmethod
    def versions(cls) -> str:
        return f"Bullpen {version('bullpen')}"

    def start(self) -> Server:
        token = secrets.token_hex(16)
        self.headers = {"Authorization": f"Bearer {token}"}
        self.data = self.home / "data"
        self.data.mkdir(mode=0o700, exist_ok=True)
        env = environment(self.home) | {
            "BULLPEN_HOME": str(self.data),
            "BULLPEN_TOKEN": token,
            "AGENT_WORKSPACE_ROOT": "/",
        }
        return Server([COMMAND, "serve", "--no-open", "--port", str(self.port)], self.home, env)

    def wait_until_ready(self) -> None:
        self.wait_until_healthy()
        self.session = self.new_session()

    def wait_until_healthy(self) -> None:
        self.server.wait_for_port(self.port)
        deadline = time.monotonic() + START_SECONDS
        while self._status("GET", "/api/health") != 200:
            if time.monotonic() > deadline:
                raise RuntimeError(f"not healthy; the log ends:\n{self.server.log_tail()}")
            time.sleep(0.02)

    def new_session(self, **more: Any) -> str:
        order = {"type": "quick", "locationPath": str(self.home), **more}
        answer: str = self.call("POST", "/api/sessions", order)["id"]
        return answer

    def start_again(self) -> None:
        self.server = self.start()
        self.wait_until_healthy()

    def restart(self) -> float:
        """Kill the server and start it again; return the seconds until it is healthy."""
        self.server.process.kill()
        self.server.process.wait()
        began = time.perf_counter()
        self.start_again()
        return time.perf_counter() - began

    def add_viewer(self, terminal: Terminal) -> WebSocket:
        """Connect another viewer to a terminal."""
        assert isinstance(terminal, OffsetTerminal)
        path = f"/ws/session/{self.session}/worker/{terminal.worker}?format=binary"
        return WebSocket(self.port, path, self.headers)

    def open(self) -> Terminal:
        order = {"type": "terminal", "cols": 80, "rows": 24}
        worker = self.call("POST", f"/api/sessions/{self.session}/workers", order)
        return OffsetTerminal(self, worker["id"])

    def reopen(self, terminal: Terminal) -> Terminal | None:
        assert isinstance(terminal, OffsetTerminal)
        return OffsetTerminal(self, terminal.worker, terminal.offset)

    def prompt(self, text: str) -> None:
        self.agent = self.new_session(agentId="demo")
        self.call("POST", f"/api/sessions/{self.agent}/prompt", {"text": text})

    def open_request(self) -> str | None:
        asked = self.call("GET", f"/api/sessions/{self.agent}/permissions")["permissions"]
        return asked[0]["id"] if asked else None

    def allow(self, request: str) -> None:
        path = f"/api/sessions/{self.agent}/permissions/{request}"
        asked = self.call("GET", f"/api/sessions/{self.agent}/permissions")["permissions"]
        options = {each["kind"]: each["optionId"] for each in asked[0]["options"]}
        self.call("POST", path, {"optionId": options["allow_once"]})

    def pids(self) -> list[int]:
        """Return the server and the keeper: the processes of this data directory that have no terminal."""
        pids = [pid for pid in processes_of(self.home) if not has_terminal(pid)]
        if self.server.pid not in pids or len(pids) < 2:
            raise RuntimeError(f"server {self.server.pid} and its keeper expected, found {pids}")
        return pids

    def stop(self) -> None:
        """End the server, and then the keeper and its children by their pids: they outlive the server."""
        self.server.stop()
        for pid in processes_of(self.home):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def call(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        status, answer = self._request(method, path, body)
        if status >= 300:
            raise RuntimeError(
                f"{method} {path}: {status} {answer!r}; the log ends:\n{self.server.log_tail()}"
            )
        result: dict[str, Any] = json.loads(answer or b"{}")
        return result

    def _status(self, method: str, path: str) -> int:
        return self._request(method, path, None)[0]

    def _request(self, method: str, path: str, body: dict[str, Any] | None) -> tuple[int, bytes]:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=SILENCE)
        try:
            headers = self.headers | {"Content-Type": "application/json"}
            connection.request(method, path, json.dumps(body) if body is not None else None, headers)
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()


def has_terminal(pid: int) -> bool:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return fields[4] != "0"  # tty_nr
