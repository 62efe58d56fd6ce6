"""WeTTY: a shell for each connection."""

import peers
from harness.processes import Server, environment
from harness.socket_io import SocketIo
from systems.system import System, Terminal


class WettyTerminal(Terminal):
    def __init__(self, port: int) -> None:
        self.io = SocketIo(port, "/socket.io/")
        self.socket = self.io.websocket
        while self.io.receive()[0] != "login":  # before that, it drops keys
            pass

    def type(self, data: bytes) -> None:
        self.io.emit("input", data.decode())

    def read(self) -> bytes:
        while True:
            event, *arguments = self.io.receive()
            if event == "data":
                output: str = arguments[0]
                self.io.emit("commit", len(output))
                return output.encode()

    def close(self) -> None:
        self.socket.close()


class Wetty(System):
    name = "WeTTY"

    @classmethod
    def missing(cls) -> str | None:
        return peers.missing("wetty")

    @classmethod
    def versions(cls) -> str:
        return peers.node_version("wetty", "wetty")

    def start(self) -> Server:
        script = peers.INSTALLED / "wetty" / "node_modules" / "wetty" / "build" / "main.js"
        options = ["--port", str(self.port), "--host", "127.0.0.1", "--base", "/", "--command", "/bin/sh"]
        return Server([peers.node(), script, *options], self.home, environment(self.home))

    def open(self) -> Terminal:
        return WettyTerminal(self.port)
