"""uvicorn's WebSocket protocol with two shorter ways: a frame that is made already, and one sent at once."""

import struct
from collections.abc import MutableMapping
from typing import Any

from uvicorn.protocols.utils import ClientDisconnected
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import Frame, Opcode
from websockets.http11 import Request

PUSH = "bullpen.push"
BINARY = 0x80 | Opcode.BINARY  # all of the message
SWITCHING = 101


def text_frame(encoded: bytes) -> bytes:
    """A text message as it goes over the wire. A server masks nothing: it is the same for everyone."""
    return Frame(Opcode.TEXT, encoded).serialize(mask=False)


def binary_frame(*parts: bytes) -> bytes:
    """A binary message as it goes over the wire, of parts that nobody has to join before."""
    length = sum(map(len, parts))
    if length < 126:
        head = struct.pack("!BB", BINARY, length)
    elif length < 1 << 16:
        head = struct.pack("!BBH", BINARY, 126, length)
    else:
        head = struct.pack("!BBQ", BINARY, 127, length)
    return b"".join((head, *parts))


class WebSocketProtocol(WebSocketsSansIOProtocol):
    """Beside `text` and `bytes` a message may have a `frame`. Nothing is compressed, so it goes as it is.

    The extension `PUSH` of the scope is a way past the application's layers, for what is small and often.
    """

    def handle_connect(self, event: Request) -> None:
        super().handle_connect(event)
        if self.response.status_code == SWITCHING:
            extensions: dict[str, Any] = self.scope["extensions"]
            extensions[PUSH] = self.push

    def push(self, frame: bytes) -> bool:
        """Sends a frame at once; False when it has to wait, or nobody is there."""
        if not self.writable.is_set() or self.close_sent or self.transport.is_closing():
            return False
        self.transport.write(frame)
        return True

    async def send(self, message: MutableMapping[str, Any]) -> None:  # type: ignore[override]
        frame = message.get("frame")
        if frame is None:
            await super().send(message)  # type: ignore[arg-type]
            return
        if not self.writable.is_set():
            await self.writable.wait()
        if self.close_sent or self.transport.is_closing():
            raise ClientDisconnected
        self.transport.write(frame)
