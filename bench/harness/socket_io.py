"""A Socket.IO client for systems that have one: text events over one WebSocket."""

import json
from typing import Any

from harness.websocket import TEXT, WebSocket


class SocketIo:
    """A connection to one namespace."""

    def __init__(self, port: int, path: str, namespace: str = "/", auth: Any = None) -> None:
        self.websocket = WebSocket(port, f"{path}?EIO=4&transport=websocket")
        self._prefix = "" if namespace == "/" else f"{namespace},"
        self._packet()  # the server's handshake
        self._send(f"40{self._prefix}{json.dumps(auth) if auth else ''}")
        while not (answer := self._packet()).startswith("40"):
            if answer.startswith("44"):
                raise ConnectionError(answer)

    def emit(self, event: str, *arguments: Any) -> None:
        self._send(f"42{self._prefix}{json.dumps([event, *arguments])}")

    def receive(self) -> list[Any]:
        """Return the name and the arguments of the next event."""
        while True:
            packet = self._packet()
            if packet.startswith("42"):
                event: list[Any] = json.loads(packet[2:].removeprefix(self._prefix))
                return event
            if packet.startswith("41"):
                raise ConnectionError("the server closed the namespace")

    def _packet(self) -> str:
        """Return the next packet, after answering pings."""
        while True:
            packet = bytes(self.websocket.receive()[1]).decode()
            if packet != "2":
                return packet
            self._send("3")

    def _send(self, packet: str) -> None:
        self.websocket.send(TEXT, packet.encode())
