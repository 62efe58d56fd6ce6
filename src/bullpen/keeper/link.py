"""The link to the server: one connection at a time, read to its end before the next one is heard."""

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

_CHUNK = 64 << 10
_MAX_UNSENT = 1 << 20  # beyond it, a server that does not read is not listened to
_GONE = select.EPOLLHUP | select.EPOLLERR
_PEER = struct.Struct("3i")  # pid, uid, gid
_PAUSE = 1.0
_UNHURRIED = 0.002  # seconds


class ServerListener:
    """Accepts the next server when told to; those that come earlier wait in the backlog."""

    def __init__(
        self, listening: socket.socket, loop: EventLoop, on_connect: Callable[[socket.socket], None]
    ) -> None:
        self._socket = listening
        self._loop = loop
        self._on_connect = on_connect
        listening.setblocking(False)

    def open(self) -> None:
        self._loop.watch(self._socket.fileno(), READABLE, self._accept)

    def _accept(self, _mask: int) -> None:
        try:
            connection, _ = self._socket.accept()
        except BlockingIOError:
            return
        except OSError:  # no descriptor is free, say
            self._loop.unwatch(self._socket.fileno())
            self._loop.later(_PAUSE, self.open)
            return
        try:
            peer = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size)
            if _PEER.unpack(peer)[1] != os.getuid():
                connection.close()
                return
            self._on_connect(connection)
        except OSError:  # it cannot be watched now; the server connects again
            self._loop.unwatch(connection.fileno())
            connection.close()
        else:
            self._loop.unwatch(self._socket.fileno())


class ServerConnection:
    """Frames from and to one server; its death ends the connection only after its last whole frame."""

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
        self._unhurried = b""  # goes behind it, or a moment later by itself
        self._moment: Timer | None = None  # while it waits
        self.due = False  # whether there is anything to flush
        self._broken = False  # nobody reads any more; what was sent to us still counts
        connected.setblocking(False)
        self._mask = READABLE
        loop.watch(connected.fileno(), self._mask, self._ready)
        loop.heed(connected.fileno())

    def send(self, frame: bytes) -> None:
        """Goes out with `flush`, so that a turn costs one system call however much it has to say."""
        self._catch_up()
        self.send_ahead(frame)

    def send_ahead(self, frame: bytes) -> None:
        """The same, before what nobody waits for."""
        if not self._broken:
            self.unsent += frame
            self.due = True

    def send_unhurried(self, frame: bytes) -> None:
        """Nobody waits for it: it goes with the next that somebody does, or a moment later."""
        if self._broken:
            return
        self._unhurried += frame
        if self._moment is None:
            self._moment = self._loop.later(_UNHURRIED, self._hurry)

    def _hurry(self) -> None:
        self.due = True

    def _catch_up(self) -> None:
        self.unsent += self._unhurried
        self._unhurried = b""
        if self._moment is not None:
            self._moment.cancel()
            self._moment = None

    def flush(self) -> None:
        if self._unhurried:
            self._catch_up()
        try:
            while self.unsent:
                del self.unsent[: self._socket.send(self.unsent)]
        except (BrokenPipeError, ConnectionError):
            self._break()
        except OSError:  # no room, or no memory: it is tried again when there is
            pass
        self.due = bool(self.unsent)
        if self.due or self._mask != READABLE:
            self._watch_what_matters()

    def _ready(self, mask: int) -> None:
        if mask & _GONE:
            self._break()
        if not mask & (READABLE | _GONE):
            return
        try:
            data = self._socket.recv(_CHUNK)
        except OSError:  # nothing is there, or no memory; a reset hides nothing: the next read goes on
            return
        try:
            for tag, header, body in self._decoder.feed(data):
                self._on_frame(tag, header, body)
        except BadFrame as error:
            self._refuse(str(error))
            data = b""
        if not data:
            self._close()

    def _refuse(self, why: str) -> None:
        """Tell the server why its connection is closed, if it reads."""
        self.send(encode(Tag.FAULT, {"id": None, "errno": errno.EPROTO, "message": f"not a frame: {why}"}))
        self.flush()

    def _break(self) -> None:
        self._broken = True
        self._catch_up()
        self.unsent.clear()
        self._watch_what_matters()

    def _watch_what_matters(self) -> None:
        """Listen unless too much is unsent; wait for room while anything is."""
        mask = (READABLE if len(self.unsent) <= _MAX_UNSENT else 0) | (WRITABLE if self.unsent else 0)
        if mask != self._mask:
            self._mask = mask
            self._loop.change(self._socket.fileno(), mask)

    def _close(self) -> None:
        self._loop.unwatch(self._socket.fileno())
        self._socket.close()
        self._on_end()
