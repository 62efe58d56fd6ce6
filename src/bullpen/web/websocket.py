"""uvicorn's WebSocket protocol, extended to send prepared frames and keystrokes without a task switch."""

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

Frame = tuple[bytes, ...]  # parts for writev, so that they need not be joined

Listener = Callable[[bytes], bool]  # return whether it handled the text; else it is received as usual

PUSH = "bullpen.push"
SET_LISTENER = "bullpen.set_listener"
SET_TRAFFIC = "bullpen.set_traffic"
FINAL_FRAME = 0x80  # the FIN bit: the message is not split into several frames
INVALID_DATA = 1007  # close code of RFC 6455 for invalid text
SWITCHING_PROTOCOLS = 101
MAX_COPIED_BYTES = 4096  # copying so few bytes costs less than sending them as a separate part
OFFSET_BYTES = 8
LINGER_SECONDS = 2.0  # how long a refused client may still be sending
_BINARY = FINAL_FRAME | Opcode.BINARY
_ECHO = struct.Struct("!BBQ")


def text_frame(encoded: bytes) -> Frame:
    """Return the frame of a text message. It is the same for every client, as servers do not mask frames."""
    return (_head(Opcode.TEXT, len(encoded)) + encoded,)


def output_frame(offset: int, data: bytes) -> Frame:
    """Return the binary frame of terminal output: the offset of its first byte, then the bytes."""
    length = OFFSET_BYTES + len(data)
    if length < 126:  # such as the echo of a key
        return (_ECHO.pack(_BINARY, length, offset) + data,)
    head = _head(Opcode.BINARY, length) + offset.to_bytes(OFFSET_BYTES, "big")
    return (head, data) if len(data) > MAX_COPIED_BYTES else (head + data,)


def _head(opcode: Opcode, length: int) -> bytes:
    """Return the header of a frame with a payload of this length."""
    first = FINAL_FRAME | opcode
    if length < 126:
        return struct.pack("!BB", first, length)
    if length < 1 << 16:
        return struct.pack("!BBH", first, 126, length)
    return struct.pack("!BBQ", first, 127, length)


def _is_utf8(data: bytes) -> bool:
    """Return whether the bytes are valid UTF-8."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


class WebSocketProtocol(WebSocketsSansIOProtocol):
    """The protocol of one WebSocket. A sent message may have a prepared `frame` instead of a text.

    Three functions in the extensions of the scope bypass the ASGI layers, for keystrokes and their echo:
    `PUSH` sends a frame, `SET_LISTENER` sets a listener for short texts, `SET_TRAFFIC` sets the byte
    counters.
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
        """Let the connection's deadlines abort this protocol."""
        super().connection_made(transport)
        self._connection.abort = self._connection.expire = self.abort

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop counting the connection."""
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
        """Add the extensions to the scope of an accepted handshake; report a refused one to the audit log."""
        super().handle_connect(event)
        if self.response.status_code == SWITCHING_PROTOCOLS:
            extensions: dict[str, Any] = self.scope["extensions"]
            self._traffic = TrafficCounters()
            extensions[PUSH] = self.push
            extensions[SET_LISTENER] = self.set_listener
            extensions[SET_TRAFFIC] = self.set_traffic
            extensions[AUTHENTICATED] = self.authenticate
            if self.scheme == "ws":  # over TLS, only the transport can write
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
        """Send a frame at once. Return False if the write buffer is full or the client has disconnected."""
        transport = self.transport
        if self.close_sent or transport.is_closing():
            return False
        written = 0
        if not transport.get_write_buffer_size() and self._descriptor >= 0:
            # Write to the socket directly: the transport would wait for the next iteration of the event loop.
            try:
                written = os.writev(self._descriptor, frame)
            except OSError:  # full or broken: the transport handles it
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

    def set_traffic(self, traffic: TrafficCounters) -> None:
        """Set the counters for the bytes of pushed frames."""
        self._traffic = traffic

    def set_listener(self, listener: Listener | None) -> None:
        """Set the listener that gets short texts first, unless earlier messages are waiting."""
        self._listener = listener

    def data_received(self, data: bytes) -> None:
        """Give a short text to the listener if possible; parse all other bytes as usual."""
        if self._refused:
            return
        if self._bounds is None:  # the handshake request; frames follow it
            self._bounds = FrameBounds()
        elif (
            self._listener is not None
            and self._bounds.between_frames
            and not (self.close_sent or self.frames or self.queue.qsize())  # no earlier message is waiting
            and (text := short_text(data)) is not None
            and self._listener(text)
        ):
            return
        else:
            self._bounds.advance(data)
        super().data_received(data)

    def handle_parser_exception(self) -> None:
        """Send the close frame with its reason, then discard what the client still sends.

        Closing a socket with unread bytes resets the connection, and the client may not get the reason.
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
        self.close_timer = self.loop.call_later(LINGER_SECONDS, self.transport.close)

    async def send(self, message: MutableMapping[str, Any]) -> None:  # type: ignore[override]
        """Send a message of the application; one with a `frame` is written unchanged.

        Raise ClientDisconnected if the socket is closed.
        """
        frame = message.get("frame")
        if frame is None:
            if self.close_sent and message["type"] == "websocket.send":
                raise ClientDisconnected  # another task of the application has closed the socket
            await super().send(message)  # type: ignore[arg-type]
            return
        await self.writable.wait()
        if not self.push(frame):
            raise ClientDisconnected
