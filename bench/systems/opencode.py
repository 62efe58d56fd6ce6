"""opencode serve: terminals and agents of one server process."""

from contextlib import suppress

import peers
from harness.processes import Server, environment
from harness.rest import call
from harness.websocket import TEXT, WebSocket
from systems.system import System, Terminal


class OpencodeTerminal(Terminal):
    def __init__(self, port: int, id: str) -> None:
        self.id = id
        self.socket = WebSocket(port, f"/pty/{id}/connect")

    def type(self, data: bytes) -> None:
        self.socket.send(TEXT, data)

    def read(self) -> bytes:
        while True:
            payload = bytes(self.socket.receive()[1])
            if not payload.startswith(b"\0"):  # a frame of metadata
                return payload

    def close(self) -> None:
        self.socket.close()


class Opencode(System):
    name = "opencode serve"

    @classmethod
    def missing(cls) -> str | None:
        return peers.missing("opencode")

    @classmethod
    def versions(cls) -> str:
        return peers.node_version("opencode", "opencode-ai")

    def start(self) -> Server:
        command = peers.INSTALLED / "opencode" / "node_modules" / ".bin" / "opencode"
        env = environment(self.home) | {
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
        }
        options = ["serve", "--port", str(self.port), "--hostname", "127.0.0.1"]
        return Server([command, *options], self.home, env, cwd=self.home)

    def wait_until_ready(self) -> None:
        """Wait for an answer: the first request in a new home may get none."""
        super().wait_until_ready()
        for _ in range(10):
            with suppress(TimeoutError):
                call(self.port, "GET", "/pty", timeout=5)
                return
        raise RuntimeError("no answer")

    def open(self) -> Terminal:
        made = call(self.port, "POST", "/pty", {"command": "/bin/sh", "args": [], "cwd": str(self.home)})
        return OpencodeTerminal(self.port, made["id"])

    def reopen(self, terminal: Terminal) -> Terminal | None:
        assert isinstance(terminal, OpencodeTerminal)
        known = {each["id"] for each in call(self.port, "GET", "/pty")}
        return OpencodeTerminal(self.port, terminal.id) if terminal.id in known else None
