"""uvicorn's WebSocket protocol, which also takes frames that are made: what goes to many is made once."""

from collections.abc import MutableMapping
from typing import Any

from uvicorn.protocols.utils import ClientDisconnected
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import Frame, Opcode


def text_frame(encoded: bytes) -> bytes:
    """A text message as it goes over the wire. A server masks nothing: it is the same for everyone."""
    return Frame(Opcode.TEXT, encoded).serialize(mask=False)


class WebSocketProtocol(WebSocketsSansIOProtocol):
    """Beside `text` and `bytes` a message may have a `frame`. Nothing is compressed, so it goes as it is."""

    async def send(self, message: MutableMapping[str, Any]) -> None:  # type: ignore[override]
        frame = message.get("frame")
        if frame is None:
            await super().send(message)  # type: ignore[arg-type]
            return
        await self.writable.wait()
        if self.close_sent or self.transport.is_closing():
            raise ClientDisconnected
        self.transport.write(frame)
