"""CloudCLI: a page for coding agents, with a shell for each session."""

import json
import secrets

import peers
from harness.processes import Server, environment
from harness.rest import call
from harness.websocket import TEXT, WebSocket
from systems.system import System, Terminal


class CloudcliTerminal(Terminal):
    def __init__(self, system: "Cloudcli", key: str) -> None:
        self.key = key
        self.socket = WebSocket(system.port, f"/shell?token={system.token}")
        self._send(
            {
                "type": "init",
                "projectPath": str(system.home),
                "provider": "plain-shell",
                "isPlainShell": True,
                "initialCommand": "exec /bin/sh",
                "sessionId": key,
                "cols": 80,
                "rows": 24,
            }
        )

    def _send(self, message: dict[str, object]) -> None:
        self.socket.send(TEXT, json.dumps(message).encode())

    def type(self, data: bytes) -> None:
        self._send({"type": "input", "data": data.decode()})

    def read(self) -> bytes:
        while True:
            message = json.loads(bytes(self.socket.receive()[1]))
            if message["type"] == "output":
                output: str = message["data"]
                return output.encode()

    def close(self) -> None:
        self.socket.close()


class Cloudcli(System):
    name = "CloudCLI"
    token = ""

    @classmethod
    def missing(cls) -> str | None:
        return peers.missing("cloudcli")

    @classmethod
    def versions(cls) -> str:
        return peers.node_version("cloudcli", "@cloudcli-ai/cloudcli")

    def start(self) -> Server:
        script = (
            peers.INSTALLED / "cloudcli" / "node_modules/@cloudcli-ai/cloudcli/dist-server/server/index.js"
        )
        env = environment(self.home) | {"SERVER_PORT": str(self.port), "HOST": "127.0.0.1"}
        return Server([peers.node(), script], self.home, env, cwd=self.home)

    def wait_until_ready(self) -> None:
        super().wait_until_ready()
        user = {"username": "bench", "password": "a long password"}
        verb = "login" if self.token else "register"
        self.token = call(self.port, "POST", f"/api/auth/{verb}", user)["token"]

    def open(self) -> Terminal:
        return CloudcliTerminal(self, secrets.token_hex(4))

    def reopen(self, terminal: Terminal) -> Terminal | None:
        assert isinstance(terminal, CloudcliTerminal)
        return CloudcliTerminal(self, terminal.key)
