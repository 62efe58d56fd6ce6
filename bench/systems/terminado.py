"""terminado on tornado: JSON arrays in both directions."""

import json
from importlib.metadata import distributions

import peers
from harness.processes import Server, environment
from harness.websocket import TEXT, WebSocket
from systems.system import System, Terminal


class JsonTerminal(Terminal):
    def __init__(self, port: int) -> None:
        self.socket = WebSocket(port, "/")

    def type(self, data: bytes) -> None:
        self.socket.send(TEXT, json.dumps(["stdin", data.decode()]).encode())

    def read(self) -> bytes:
        while True:
            kind, text = json.loads(bytes(self.socket.receive()[1]))
            if kind == "stdout":
                output: str = text
                return output.encode()

    def close(self) -> None:
        self.socket.close()


class Terminado(System):
    name = "terminado"

    @classmethod
    def missing(cls) -> str | None:
        return None if (peers.PYTHON.parent.parent / "installed").exists() else "not installed"

    @classmethod
    def versions(cls) -> str:
        installed = next(peers.PYTHON.parent.parent.glob("lib/python*/site-packages"))
        found = {d.name: d.version for d in distributions(path=[str(installed)])}
        return f"terminado {found['terminado']}, tornado {found['tornado']}"

    def start(self) -> Server:
        script = peers.SOURCES / "terminado_ws.py"
        return Server([peers.PYTHON, script, str(self.port)], self.home, environment(self.home))

    def open(self) -> Terminal:
        return JsonTerminal(self.port)
