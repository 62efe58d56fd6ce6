"""uvicorn's WebSocket protocol with shorter ways for what is made already and for what is in a hurry."""

import os
import struct
from collections.abc import Callable, MutableMapping
from typing import Any

from uvicorn.protocols.utils import ClientDisconnected
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import Opcode
from websockets.http11 import Request

from ..wire.short_frames import Bounds, short_text

Frame = tuple[bytes, ...]  # in parts that nobody has to join: what goes to the kernel is copied there anyway

Listener = Callable[[str], bool]  # whether it took the text; else it comes the usual way

PUSH = "bullpen.push"
HEAR = "bullpen.hear"
WHOLE = 0x80  # not one of several pieces
SWITCHING = 101
SHORT = 4096  # bytes that cost less to copy than to send as a part of their own
OFFSET = 8  # bytes
LINGER = 2.0  # seconds that who was refused may still be sending
_BINARY = WHOLE | Opcode.BINARY
_ECHO = struct.Struct("!BBQ")


def text_frame(encoded: bytes) -> Frame:
    """A text message as it goes over the wire. A server masks nothing: it is the same for everyone."""
    return (_head(Opcode.TEXT, len(encoded)) + encoded,)


def output_frame(offset: int, data: bytes) -> Frame:
    """Output of a terminal as it goes over the wire: the offset of its first byte, then the bytes."""
    length = OFFSET + len(data)
    if length < 126:  # an echo, say
        return (_ECHO.pack(_BINARY, length, offset) + data,)
    head = _head(Opcode.BINARY, length) + offset.to_bytes(OFFSET, "big")
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

    The extensions `PUSH` and `HEAR` of the scope are ways past the application's layers, out and in, for
    what is small and often: somebody's keys and their echo.
    """

    _listener: Listener | None = None
    _bounds: Bounds | None = None
    _descriptor = -1
    _refused = False

    def handle_connect(self, event: Request) -> None:
        super().handle_connect(event)
        if self.response.status_code == SWITCHING:
            extensions: dict[str, Any] = self.scope["extensions"]
            extensions[PUSH] = self.push
            extensions[HEAR] = self.hear
            if self.scheme == "ws":  # what goes over TLS is the transport's to write
                self._descriptor = self.transport.get_extra_info("socket").fileno()

    def push(self, frame: Frame) -> bool:
        """Sends a frame at once; False when it has to wait, or nobody is there."""
        transport = self.transport
        if not self.writable.is_set() or self.close_sent or transport.is_closing():
            return False
        if transport.get_write_buffer_size() or not self._write_past_transport(frame):
            transport.writelines(frame)
        return True

    def _write_past_transport(self, frame: Frame) -> bool:
        """Straight into the socket; False when nothing was written.

        The transport would wait for the end of the loop's turn, and take another turn for it.
        """
        if self._descriptor < 0:
            return False
        try:
            written = os.writev(self._descriptor, frame)
        except OSError:  # it is full, or broken: the transport will find out and knows what to do
            return False
        if written < sum(map(len, frame)):
            self.transport.write(memoryview(b"".join(frame))[written:])
        return True

    def hear(self, listener: Listener | None) -> None:
        """From now on short texts are offered to a listener first, unless others wait before them."""
        self._listener = listener

    def data_received(self, data: bytes) -> None:
        if self._refused:
            return
        if self._bounds is None:  # the request; frames come after it
            self._bounds = Bounds()
        elif self._listener and self._bounds.between_frames and self._is_heard(data):
            return
        else:
            self._bounds.walk(data)
        super().data_received(data)

    def _is_heard(self, data: bytes) -> bool:
        """Whether the listener took it: a short text before which nothing waits."""
        if self.close_sent or self.frames or self.queue.qsize():
            return False
        text = short_text(data)
        return text is not None and self._listener is not None and self._listener(text)

    def handle_parser_exception(self) -> None:
        """Says why it closes, and lets the rest of what was refused run into the void.

        A socket that is closed with bytes unread resets the connection, and the reason is lost on its way.
        """
        assert self.conn.close_sent is not None
        self._refused = self.close_sent = True
        close = self.conn.close_sent
        self.queue.put_nowait({"type": "websocket.disconnect", "code": close.code, "reason": close.reason})
        self.transport.write(b"".join(self.conn.data_to_send()))
        if self.transport.can_write_eof():
            self.transport.write_eof()
        if self.read_paused:
            self.read_paused = False
            self.transport.resume_reading()
        self.close_timer = self.loop.call_later(LINGER, self.transport.close)

    async def send(self, message: MutableMapping[str, Any]) -> None:  # type: ignore[override]
        frame = message.get("frame")
        if frame is None:
            await super().send(message)  # type: ignore[arg-type]
            return
        await self.writable.wait()
        if not self.push(frame):
            raise ClientDisconnected
