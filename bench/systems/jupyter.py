"""jupyter_server: terminado behind REST; a terminal stays when its viewer leaves."""

import json
import secrets
from pathlib import Path
from urllib.parse import quote

import peers
from harness.processes import Server, environment
from harness.rest import call
from harness.websocket import TEXT, WebSocket
from systems.system import System, Terminal


class JupyterTerminal(Terminal):
    def __init__(self, system: "Jupyter", name: str) -> None:
        self.name = name
        path = f"/terminals/websocket/{quote(name)}?token={system.token}"
        self.socket = WebSocket(system.port, path)

    def type(self, data: bytes) -> None:
        self.socket.send(TEXT, json.dumps(["stdin", data.decode()]).encode())

    def read(self) -> bytes:
        while True:
            kind, *rest = json.loads(bytes(self.socket.receive()[1]))
            if kind == "stdout":
                output: str = rest[0]
                return output.encode()

    def close(self) -> None:
        self.socket.close()


class Jupyter(System):
    name = "jupyter_server"

    @classmethod
    def missing(cls) -> str | None:
        return peers.missing("jupyter")

    @classmethod
    def versions(cls) -> str:
        return peers.python_version("jupyter", "jupyter_server")

    def start(self) -> Server:
        self.token = secrets.token_hex(16)
        command: list[str | Path] = [
            peers.INSTALLED / "jupyter" / "bin" / "jupyter-server",
            "--no-browser",
            "--allow-root",
            f"--ServerApp.port={self.port}",
            f"--IdentityProvider.token={self.token}",
            f"--ServerApp.root_dir={self.home}",
        ]
        return Server(command, self.home, environment(self.home))

    def open(self) -> Terminal:
        made = call(self.port, "POST", "/api/terminals", {}, self._headers)
        return JupyterTerminal(self, made["name"])

    def reopen(self, terminal: Terminal) -> Terminal | None:
        assert isinstance(terminal, JupyterTerminal)
        known = {each["name"] for each in call(self.port, "GET", "/api/terminals", None, self._headers)}
        return JupyterTerminal(self, terminal.name) if terminal.name in known else None

    @property
    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"token {self.token}"}
