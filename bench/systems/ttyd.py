"""ttyd, if it is installed (1.7.4 or later): binary frames with one letter before the bytes."""

import shutil
import subprocess

from harness.processes import Server, environment
from harness.websocket import BINARY, WebSocket
from systems.system import System, Terminal

INPUT = OUTPUT = b"0"


class LetteredTerminal(Terminal):
    def __init__(self, port: int) -> None:
        self.socket = WebSocket(port, "/ws", {"Sec-WebSocket-Protocol": "tty"})
        self.socket.send(BINARY, b'{"AuthToken":"","columns":80,"rows":24}')

    def type(self, data: bytes) -> None:
        self.socket.send(BINARY, INPUT + data)

    def read(self) -> memoryview:
        while True:
            payload = self.socket.receive()[1]
            if payload[:1] == OUTPUT:
                return payload[1:]

    def close(self) -> None:
        self.socket.close()


class Ttyd(System):
    name = "ttyd"

    @classmethod
    def missing(cls) -> str | None:
        return None if shutil.which("ttyd") else "not installed"

    @classmethod
    def versions(cls) -> str:
        return subprocess.run(
            ["ttyd", "--version"], check=True, capture_output=True, text=True
        ).stdout.strip()

    def start(self) -> Server:
        options = ["--interface", "127.0.0.1", "--port", str(self.port), "--writable", "--debug", "0"]
        return Server(["ttyd", *options, "/bin/sh"], self.home, environment(self.home))

    def open(self) -> Terminal:
        return LetteredTerminal(self.port)
