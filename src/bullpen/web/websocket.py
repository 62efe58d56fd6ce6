"""uvicorn's WebSocket protocol with shorter ways for what is made already and for what is in a hurry."""

import os
import struct
from collections.abc import Callable, MutableMapping
from typing import Any

from uvicorn.config import Config
from uvicorn.protocols.utils import ClientDisconnected
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from uvicorn.server import ServerState
from websockets.frames import Opcode
from websockets.http11 import Request

from ..wire.short_frames import FrameBounds, short_text
from .connections import AUTHENTICATED, ClientConnection, OnRefusal
from .traffic import TrafficCounters

Frame = tuple[bytes, ...]  # in parts that nobody has to join: what goes to the kernel is copied there anyway

Listener = Callable[[bytes], bool]  # whether it took the text; else it comes the usual way

PUSH = "bullpen.push"
HEAR = "bullpen.hear"
COUNT = "bullpen.count"
WHOLE = 0x80  # not one of several pieces
INVALID_DATA = 1007  # a close code of RFC 6455
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


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


class WebSocketProtocol(WebSocketsSansIOProtocol):
    """Beside `text` and `bytes` a message may have a `frame`. Nothing is compressed, so it goes as it is.

    The extensions `PUSH` and `HEAR` of the scope are ways past the application's layers, out and in, for
    what is small and often: somebody's keys and their echo. `COUNT` says where finished frames are counted.
    """

    _traffic: TrafficCounters
    _listener: Listener | None = None
    _bounds: FrameBounds | None = None
    _descriptor = -1
    _refused = False

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        connection: ClientConnection,
        on_refusal: OnRefusal,
    ) -> None:
        super().__init__(config, server_state, app_state)
        self._connection = connection
        self._on_refusal = on_refusal

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._connection.abort = self._connection.expire = self.abort

    def connection_lost(self, exc: Exception | None) -> None:
        self._connection.close()
        super().connection_lost(exc)

    def abort(self) -> None:
        """Close the connection at once. The application must not write to it any more."""
        self.disconnected = True
        self.transport.abort()

    def authenticate(self) -> None:
        """Lift the limits on unauthenticated connections: the client has shown its whole credential."""
        self._connection.authenticate()
        self._connection.stop_deadline()

    def handle_connect(self, event: Request) -> None:
        super().handle_connect(event)
        if self.response.status_code == SWITCHING:
            extensions: dict[str, Any] = self.scope["extensions"]
            self._traffic = TrafficCounters()
            extensions[PUSH] = self.push
            extensions[HEAR] = self.hear
            extensions[COUNT] = self.count
            extensions[AUTHENTICATED] = self.authenticate
            if self.scheme == "ws":  # what goes over TLS is the transport's to write
                self._descriptor = self.transport.get_extra_info("socket").fileno()
        else:
            path, peer = event.path.partition("?")[0], self.client[0] if self.client else ""
            self._on_refusal(path, self.response.status_code, peer)

    def send_receive_event_to_app(self) -> None:
        """Close the connection if a text is not UTF-8. uvicorn does it too, but logs a traceback."""
        if self.curr_msg_data_type == "text" and not _is_utf8(b"".join(self.frames)):
            self.frames = []
            self.conn.send_close(INVALID_DATA)
            self.handle_parser_exception()
        else:
            super().send_receive_event_to_app()

    def push(self, frame: Frame) -> bool:
        """Sends a frame at once; False when it has to wait, or nobody is there."""
        transport = self.transport
        if self.close_sent or transport.is_closing():
            return False
        written = 0
        if not transport.get_write_buffer_size() and self._descriptor >= 0:
            # Straight into the socket: the transport would wait for the end of the loop's turn.
            try:
                written = os.writev(self._descriptor, frame)
            except OSError:  # it is full, or broken: the transport will find out and knows what to do
                written = 0
        elif not self.writable.is_set():
            return False
        size = sum(map(len, frame))
        if not written:
            transport.writelines(frame)
        elif written < size:
            transport.write(memoryview(b"".join(frame))[written:])
        self._traffic.bytes_out += size
        return True

    def count(self, traffic: TrafficCounters) -> None:
        """From now on what is pushed counts as this traffic."""
        self._traffic = traffic

    def hear(self, listener: Listener | None) -> None:
        """From now on short texts are offered to a listener first, unless others wait before them."""
        self._listener = listener

    def data_received(self, data: bytes) -> None:
        if self._refused:
            return
        if self._bounds is None:  # the request; frames come after it
            self._bounds = FrameBounds()
        elif (
            self._listener is not None
            and self._bounds.between_frames
            and not (self.close_sent or self.frames or self.queue.qsize())  # nothing waits before it
            and (text := short_text(data)) is not None
            and self._listener(text)
        ):
            return
        else:
            self._bounds.advance(data)
        super().data_received(data)

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
            if self.close_sent and message["type"] == "websocket.send":
                raise ClientDisconnected  # another task of the application has closed the socket
            await super().send(message)  # type: ignore[arg-type]
            return
        await self.writable.wait()
        if not self.push(frame):
            raise ClientDisconnected
