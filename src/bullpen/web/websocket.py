"""uvicorn's WebSocket protocol with two shorter ways: a frame that is made already, and one sent at once."""

import struct
from collections.abc import MutableMapping
from typing import Any

from uvicorn.protocols.utils import ClientDisconnected
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import Opcode
from websockets.http11 import Request

PUSH = "bullpen.push"
WHOLE = 0x80  # not one of several pieces
SWITCHING = 101


def text_frame(encoded: bytes) -> bytes:
    """A text message as it goes over the wire. A server masks nothing: it is the same for everyone."""
    return _frame(Opcode.TEXT, encoded)


def binary_frame(*parts: bytes) -> bytes:
    """A binary message as it goes over the wire, of parts that nobody has to join before."""
    return _frame(Opcode.BINARY, *parts)


def _frame(opcode: Opcode, *parts: bytes) -> bytes:
    first, length = WHOLE | opcode, sum(map(len, parts))
    if length < 126:
        head = struct.pack("!BB", first, length)
    elif length < 1 << 16:
        head = struct.pack("!BBH", first, 126, length)
    else:
        head = struct.pack("!BBQ", first, 127, length)
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
        await self.writable.wait()
        if not self.push(frame):
            raise ClientDisconnected
