"""uvicorn's WebSocket protocol with two shorter ways: a frame that is made already, and one sent at once."""

import struct
from collections.abc import MutableMapping
from typing import Any

from uvicorn.protocols.utils import ClientDisconnected
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import Opcode
from websockets.http11 import Request

Frame = tuple[bytes, ...]  # in parts that nobody has to join: what goes to the kernel is copied there anyway

PUSH = "bullpen.push"
WHOLE = 0x80  # not one of several pieces
SWITCHING = 101
SHORT = 4096  # bytes that cost less to copy than to send as a part of their own


def text_frame(encoded: bytes) -> Frame:
    """A text message as it goes over the wire. A server masks nothing: it is the same for everyone."""
    return (_head(Opcode.TEXT, len(encoded)) + encoded,)


def binary_frame(prefix: bytes, data: bytes) -> Frame:
    """A binary message as it goes over the wire: what stands before the data, and the data as they are."""
    head = _head(Opcode.BINARY, len(prefix) + len(data)) + prefix
    return (head, data) if len(data) > SHORT else (head + data,)


def _head(opcode: Opcode, length: int) -> bytes:
    first = WHOLE | opcode
    if length < 126:
        return struct.pack("!BB", first, length)
    if length < 1 << 16:
        return struct.pack("!BBH", first, 126, length)
    return struct.pack("!BBQ", first, 127, length)


class WebSocketProtocol(WebSocketsSansIOProtocol):
    """Beside `text` and `bytes` a message may have a `frame`. Nothing is compressed, so it goes as it is.

    The extension `PUSH` of the scope is a way past the application's layers, for what is small and often.
    """

    def handle_connect(self, event: Request) -> None:
        super().handle_connect(event)
        if self.response.status_code == SWITCHING:
            extensions: dict[str, Any] = self.scope["extensions"]
            extensions[PUSH] = self.push

    def push(self, frame: Frame) -> bool:
        """Sends a frame at once; False when it has to wait, or nobody is there."""
        if not self.writable.is_set() or self.close_sent or self.transport.is_closing():
            return False
        self.transport.writelines(frame)
        return True

    async def send(self, message: MutableMapping[str, Any]) -> None:  # type: ignore[override]
        frame = message.get("frame")
        if frame is None:
            await super().send(message)  # type: ignore[arg-type]
            return
        await self.writable.wait()
        if not self.push(frame):
            raise ClientDisconnected
