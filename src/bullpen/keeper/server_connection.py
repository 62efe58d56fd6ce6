"""Connect to one server at a time: each connection is read to its end before the next one is accepted."""

from __future__ import annotations

import errno
import os
import select
import socket
import struct

from .frames import BadFrame, FrameDecoder, Tag, encode
from .loop import READABLE, WRITABLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .loop import EventLoop, Timer

_READ_BYTES = 64 << 10
_MAX_UNSENT_BYTES = 1 << 20  # backpressure: beyond it, nothing is read from a server that does not read
_GONE = select.EPOLLHUP | select.EPOLLERR
_PEER = struct.Struct("3i")  # pid, uid, gid
_ACCEPT_RETRY_SECONDS = 1.0
_MAX_DELAY_SECONDS = 0.002  # of a frame that may be sent with others


class ServerListener:
    """Accepts one server after each call of `open`; other servers wait in the backlog."""

    def __init__(
        self, listening: socket.socket, loop: EventLoop, on_connect: Callable[[socket.socket], None]
    ) -> None:
        self._socket = listening
        self._loop = loop
        self._on_connect = on_connect
        listening.setblocking(False)

    def open(self) -> None:
        """Accept the next server."""
        self._loop.watch(self._socket.fileno(), READABLE, self._accept)

    def _accept(self, _mask: int) -> None:
        """Accept one server of the same user, and stop accepting until `open` is called again."""
        try:
            connection, _ = self._socket.accept()
        except BlockingIOError:
            return
        except OSError:  # no descriptor is free, for example
            self._loop.unwatch(self._socket.fileno())
            self._loop.call_later(_ACCEPT_RETRY_SECONDS, self.open)
            return
        try:
            peer = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size)
            if _PEER.unpack(peer)[1] != os.getuid():
                connection.close()
                return
            self._on_connect(connection)
        except OSError:  # the connection cannot be watched now; the server connects again
            self._loop.unwatch(connection.fileno())
            connection.close()
        else:
            self._loop.unwatch(self._socket.fileno())


class ServerConnection:
    """Frames from and to one server. If it dies, the frames that it had sent are processed before the end."""

    def __init__(
        self,
        connected: socket.socket,
        loop: EventLoop,
        on_frame: Callable[[int, dict[str, Any], bytes], None],
        on_end: Callable[[], None],
    ) -> None:
        self._socket = connected
        self._loop = loop
        self._on_frame = on_frame
        self._on_end = on_end
        self._decoder = FrameDecoder()
        self.unsent = bytearray()
        self._delayed = b""  # frames that are sent behind the next one, or by the timer
        self._delay_timer: Timer | None = None
        self.needs_flush = False
        self._broken = False  # the server reads no more; what it has sent still counts
        connected.setblocking(False)
        self._mask = READABLE
        loop.watch(connected.fileno(), self._mask, self._ready)
        loop.watch_urgently(connected.fileno())

    def send(self, frame: bytes) -> None:
        """Queue a frame behind all others. `flush` sends it: one system call per iteration is enough."""
        self._queue_delayed()
        self.send_before_delayed(frame)

    def send_before_delayed(self, frame: bytes) -> None:
        """Queue a frame before the delayed ones."""
        if not self._broken:
            self.unsent += frame
            self.needs_flush = True

    def send_delayed(self, frame: bytes) -> None:
        """Queue a frame that may wait for the next one, or for a moment if there is none."""
        if self._broken:
            return
        self._delayed += frame
        if self._delay_timer is None:
            self._delay_timer = self._loop.call_later(_MAX_DELAY_SECONDS, self._end_delay)

    def _end_delay(self) -> None:
        """Let the delayed frames be sent after this iteration of the loop."""
        self.needs_flush = True

    def _queue_delayed(self) -> None:
        """Move the delayed frames to the queue of those to send."""
        self.unsent += self._delayed
        self._delayed = b""
        if self._delay_timer is not None:
            self._delay_timer.cancel()
            self._delay_timer = None

    def flush(self) -> None:
        """Send as many of the queued bytes as the socket accepts now."""
        if self._delayed:
            self._queue_delayed()
        try:
            while self.unsent:
                del self.unsent[: self._socket.send(self.unsent)]
        except (BrokenPipeError, ConnectionError):
            self._break()
        except OSError:  # no room, or no memory: tried again when the socket is writable
            pass
        self.needs_flush = bool(self.unsent)
        if self.needs_flush or self._mask != READABLE:
            self._update_watch()

    def _ready(self, mask: int) -> None:
        """Read what the server has sent and pass on its frames; called when the socket is ready."""
        if mask & _GONE:
            self._break()
        if not mask & (READABLE | _GONE):
            return
        try:
            data = self._socket.recv(_READ_BYTES)
        except OSError:  # nothing to read, or no memory; after a reset the next read returns what is left
            return
        try:
            for tag, header, body in self._decoder.feed(data):
                self._on_frame(tag, header, body)
        except BadFrame as error:
            self._refuse(str(error))
            data = b""
        if not data:
            self._close()

    def _refuse(self, reason: str) -> None:
        """Send the server the reason why its connection is closed."""
        self.send(encode(Tag.FAULT, {"id": None, "errno": errno.EPROTO, "message": f"not a frame: {reason}"}))
        self.flush()

    def _break(self) -> None:
        """Send nothing more, and go on reading what the server has sent."""
        self._broken = True
        self._queue_delayed()
        self.unsent.clear()
        self._update_watch()

    def _update_watch(self) -> None:
        """Wait for input unless too much is unsent; wait for writability while anything is unsent."""
        mask = (READABLE if len(self.unsent) <= _MAX_UNSENT_BYTES else 0) | (WRITABLE if self.unsent else 0)
        if mask != self._mask:
            self._mask = mask
            self._loop.change_mask(self._socket.fileno(), mask)

    def _close(self) -> None:
        """Close the socket and report the end of the connection."""
        self._loop.unwatch(self._socket.fileno())
        self._socket.close()
        self._on_end()
