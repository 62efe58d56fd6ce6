"""CLI Agent Orchestrator (CAO): agents in windows of tmux. Here each window runs a shell."""

import json
import os
import signal
import subprocess
from contextlib import suppress
from urllib.parse import urlencode

import peers
from harness.processes import Server, environment, processes_of
from harness.rest import call
from harness.websocket import TEXT, WebSocket
from systems.system import System, Terminal

PROFILE = "---\nname: plain\ndescription: a shell\n---\nNothing.\n"
# CAO waits until its stand-in for an agent has shown this prompt.
STAND_IN = "#!/bin/sh\nexec env PS1='❯ ' /bin/sh -i\n"


class CaoTerminal(Terminal):
    def __init__(self, port: int, id: str) -> None:
        self.id = id
        self.socket = WebSocket(port, f"/terminals/{id}/ws")

    def type(self, data: bytes) -> None:
        self.socket.send(TEXT, json.dumps({"type": "input", "data": data.decode()}).encode())

    def read(self) -> bytes:
        return bytes(self.socket.receive()[1])

    def close(self) -> None:
        self.socket.close()


class Cao(System):
    name = "CAO"
    redraws = True

    @classmethod
    def missing(cls) -> str | None:
        return peers.missing("cao")

    @classmethod
    def versions(cls) -> str:
        tmux = subprocess.run(["tmux", "-V"], check=True, capture_output=True, text=True).stdout.strip()
        return f"{peers.python_version('cao', 'cli-agent-orchestrator')} on {tmux}"

    def start(self) -> Server:
        programs = self.home / "bin"
        programs.mkdir(exist_ok=True)
        (programs / "mock_cli").write_text(STAND_IN)
        (programs / "mock_cli").chmod(0o755)
        (self.home / ".profile").write_text(f"PATH={programs}:$PATH\n")
        env = environment(self.home) | {"TMUX_TMPDIR": str(self.home)}
        command = peers.INSTALLED / "cao" / "bin" / "cao-server"
        return Server([command, "--port", str(self.port)], self.home, env)

    def wait_until_ready(self) -> None:
        super().wait_until_ready()
        profiles = self.home / ".aws" / "cli-agent-orchestrator" / "agent-store"
        profiles.mkdir(parents=True, exist_ok=True)
        (profiles / "plain.md").write_text(PROFILE)

    def open(self) -> Terminal:
        query = {"provider": "mock_cli", "agent_profile": "plain", "working_directory": str(self.home)}
        made = call(self.port, "POST", f"/sessions?{urlencode(query)}")
        return CaoTerminal(self.port, made["id"])

    def reopen(self, terminal: Terminal) -> Terminal | None:
        assert isinstance(terminal, CaoTerminal)
        return CaoTerminal(self.port, terminal.id)

    def pids(self) -> list[int]:
        """Return the server, tmux and its clients, which do the work of the terminals."""
        tmux = [pid for pid in processes_of(self.home) if b"tmux" in command_of(pid)]
        return [self.server.pid, *tmux]

    def stop(self) -> None:
        self.server.stop()
        for pid in processes_of(self.home):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def command_of(pid: int) -> bytes:
    with open(f"/proc/{pid}/cmdline", "rb") as file:
        return file.read()
