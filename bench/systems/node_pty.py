"""node-pty with ws: raw bytes, unjoined or joined as in the demo server of xterm.js."""

import json
import subprocess
from pathlib import Path
from typing import ClassVar

import peers
from harness.processes import Server, environment
from harness.websocket import BINARY, WebSocket
from systems.system import System, Terminal


class RawTerminal(Terminal):
    def __init__(self, port: int) -> None:
        self.socket = WebSocket(port, "/")

    def type(self, data: bytes) -> None:
        self.socket.send(BINARY, data)

    def read(self) -> memoryview:
        return self.socket.receive()[1]

    def close(self) -> None:
        self.socket.close()


class NodePty(System):
    name = "node-pty + ws"
    mode: ClassVar[str] = "plain"

    @classmethod
    def missing(cls) -> str | None:
        return None if (peers.NODE_MODULES.parent / "installed").exists() else "not installed"

    @classmethod
    def versions(cls) -> str:
        texts = [(peers.NODE_MODULES / name / "package.json").read_text() for name in ("node-pty", "ws")]
        packages = [f"{package['name']} {package['version']}" for package in map(json.loads, texts)]
        node = subprocess.run([peers.node(), "--version"], check=True, capture_output=True, text=True)
        return ", ".join([*packages, f"node {node.stdout.strip()}"])

    def start(self) -> Server:
        command: list[str | Path] = [
            peers.node(),
            peers.SOURCES / "node_pty_ws.js",
            str(self.port),
            self.mode,
        ]
        return Server(command, self.home, environment(self.home), cwd=peers.NODE_MODULES.parent)

    def open(self) -> Terminal:
        return RawTerminal(self.port)


class NodePtyJoined(NodePty):
    name = "node-pty + ws, joined"
    mode = "joined"
