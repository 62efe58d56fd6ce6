"""HAPI: a hub, a runner on the same machine, and a process for each session, which has its terminals.

The agent is the demo agent of Bullpen, started as HAPI starts opencode; it speaks ACP. The hub is the server
that is killed; runner and sessions are processes of their own.
"""

import os
import secrets
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import peers
from harness.processes import START_SECONDS, Server, environment, processes_of
from harness.rest import call
from harness.socket_io import SocketIo
from systems.system import System, Terminal

AGENT = Path(sys.executable).parent / "bullpen-demo-agent"
STAND_IN = f'#!/bin/sh\nif [ "$1" = acp ]; then exec {AGENT}; fi\necho 1.18.33\n'
MAX_TERMINALS = 4  # of one session


class HapiTerminal(Terminal):
    def __init__(self, system: "Hapi", session: str, id: str) -> None:
        self.session = session
        self.id = id
        self.io = SocketIo(system.port, "/socket.io/", "/terminal", {"token": system.token})
        self.socket = self.io.websocket
        order = {"sessionId": session, "terminalId": id, "cols": 80, "rows": 24}
        self.io.emit("terminal:create", order)
        while (event := self.io.receive())[0] != "terminal:ready":
            if event[0] == "terminal:error":
                raise ConnectionError(str(event))

    def type(self, data: bytes) -> None:
        self.io.emit("terminal:write", {"terminalId": self.id, "data": data.decode()})

    def read(self) -> bytes:
        while True:
            event, *arguments = self.io.receive()
            if event == "terminal:output":
                output: str = arguments[0]["data"]
                return output.encode()
            if event in ("terminal:exit", "terminal:error"):
                raise ConnectionError(str(arguments))

    def close(self) -> None:
        self.socket.close()


class Hapi(System):
    name = "HAPI"
    runs_agents = True
    token = ""
    session = ""
    _opened = 0

    @classmethod
    def missing(cls) -> str | None:
        return peers.missing("hapi")

    @classmethod
    def versions(cls) -> str:
        return peers.node_version("hapi", "@twsxtd/hapi")

    def start(self) -> Server:
        programs = self.home / "bin"
        programs.mkdir(exist_ok=True)
        (programs / "opencode").write_text(STAND_IN)
        (programs / "opencode").chmod(0o755)
        if not self.token:
            self.secret = secrets.token_urlsafe(32)
        self.env = environment(self.home) | {
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            "HAPI_HOME": str(self.home / "hapi"),
            "HAPI_LISTEN_PORT": str(self.port),
            "HAPI_API_URL": f"http://127.0.0.1:{self.port}",
            "CLI_API_TOKEN": self.secret,
        }
        return Server([self._command, "hub", "--no-relay"], self.home, self.env)

    def wait_until_ready(self) -> None:
        super().wait_until_ready()
        self.token = call(self.port, "POST", "/api/auth", {"accessToken": self.secret})["token"]
        if not self.session:
            subprocess.run([self._command, "runner", "start"], env=self.env, check=True, capture_output=True)
            self.session = self._spawn()
        self._until(lambda: self._session()["active"])

    def open(self) -> Terminal:
        if self._opened == MAX_TERMINALS:
            self.session, self._opened = self._spawn(), 0
            self._until(lambda: self._session()["active"])
        self._opened += 1
        return HapiTerminal(self, self.session, secrets.token_hex(8))

    def reopen(self, terminal: Terminal) -> Terminal | None:
        assert isinstance(terminal, HapiTerminal)
        return HapiTerminal(self, terminal.session, terminal.id)

    def prompt(self, text: str) -> None:
        self.api("POST", f"/api/sessions/{self.session}/messages", {"text": text})

    def open_request(self) -> str | None:
        requests = (self._session().get("agentState") or {}).get("requests") or {}
        return next(iter(requests), None)

    def allow(self, request: str) -> None:
        self.api("POST", f"/api/sessions/{self.session}/permissions/{request}/approve", {})

    def pids(self) -> list[int]:
        """Return the hub, the runner and the process of the session, without shells and agents."""
        mine = self._command.resolve()
        return [pid for pid in processes_of(self.home) if Path(f"/proc/{pid}/exe").resolve() == mine]

    def stop(self) -> None:
        self.server.stop()
        for pid in processes_of(self.home):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def api(self, method: str, path: str, body: Any = None) -> Any:
        return call(self.port, method, path, body, {"Authorization": f"Bearer {self.token}"})

    @property
    def _command(self) -> Path:
        return peers.INSTALLED / "hapi" / "node_modules/@twsxtd/hapi-linux-x64/bin/hapi"

    def _spawn(self) -> str:
        """Start a session with an agent; return its id."""
        machine = self._until(lambda: self.api("GET", "/api/machines")["machines"])[0]["id"]
        order = {"directory": str(self.home), "agent": "opencode"}
        answer = self.api("POST", f"/api/machines/{machine}/spawn", order)
        if answer.get("type") != "success":
            raise RuntimeError(f"no session: {answer}")
        return str(answer["sessionId"])

    def _session(self) -> dict[str, Any]:
        answer: dict[str, Any] = self.api("GET", f"/api/sessions/{self.session}")
        found: dict[str, Any] = answer["session"]
        return found

    def _until(self, condition: Any) -> Any:
        deadline = time.monotonic() + START_SECONDS
        while not (found := condition()):
            if time.monotonic() > deadline:
                raise RuntimeError(f"not ready; the log ends:\n{self.server.log_tail()}")
            time.sleep(0.05)
        return found
