"""Answer the requests of the server, and send it notices of growth and exits."""

from __future__ import annotations

import errno
import os
import time

from .children import Children
from .frames import MAX_NOTICES_IN_FLIGHT, VERSION, Tag, encode, encode_json_header
from .input import InputGap
from .notices import GrowthNotices
from .server_connection import ServerConnection, ServerListener
from .spawn import SpawnRequest, integer, short_name, window_size, worker_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Callable
    from typing import Any

    from .child import Child
    from .loop import EventLoop


# What a bad request may raise. MemoryError: the limits of a new child are the keeper's for a moment.
_REQUEST_ERRORS = (
    OSError,
    KeyError,
    TypeError,
    ValueError,
    OverflowError,
    AttributeError,
    RecursionError,
    MemoryError,
)
MAX_MESSAGE_LENGTH = 1000  # characters of a fault, which may quote a request as long as a frame


class KeeperService:
    """The keeper behind its socket: dispatches each frame of the server and replies to it."""

    def __init__(
        self, name: str, listening: socket.socket, spools: int, idle_timeout: float, loop: EventLoop
    ) -> None:
        self._hello = {
            "version": VERSION,
            "keeper": name,
            "pid": os.getpid(),
            "boot": _boot_id(),
            "started": time.time(),
            "notices": MAX_NOTICES_IN_FLIGHT,
        }
        self._idle_timeout = idle_timeout  # seconds without a server and children, until the keeper ends
        self._loop = loop
        self._notices = GrowthNotices(loop)
        self._children = Children(spools, loop, self._notices.grown, self._on_exit)
        self._listener = ServerListener(listening, loop, self._on_connect)
        self._connection: ServerConnection | None = None
        self._server: ServerConnection | None = None  # the same, once its hello has arrived
        self._idle_since = time.monotonic()
        self._requests: dict[int, Callable[[dict[str, Any], bytes], dict[str, Any]]] = {
            Tag.SPAWN: self._spawn,
            Tag.RESIZE: self._resize,
            Tag.SIGNAL: self._signal,
            Tag.CLOSE_INPUT: self._close_input,
            Tag.STATUS: self._status,
            Tag.CONSUMED: self._consumed,
            Tag.ACK_EXIT: self._ack_exit,
            Tag.FORGET: self._remove_spools,
        }
        loop.after_iteration = self._send_pending
        self._await_server()

    def _await_server(self) -> None:
        """Accept a server, after the start or after the end of the last connection."""
        self._connection = self._server = None
        self._listener.open()
        self._schedule_idle_end()

    def _on_connect(self, connected: socket.socket) -> None:
        """Receive the frames of a server that has connected; when it is gone, wait for the next one."""
        self._connection = ServerConnection(connected, self._loop, self._on_frame, self._await_server)

    def _on_frame(self, tag: int, header: dict[str, Any], body: bytes) -> None:
        """Handle one frame of the server. The reply to a write is delayed, to be sent with the echo."""
        assert self._connection is not None
        if tag == Tag.WRITE and self._server is not None:
            # The reply can be sent together with the echo of the child.
            self._connection.send_delayed(self._write_input(header, body))
        elif tag == Tag.SEEN:
            self._notices.acknowledged()
        elif tag == Tag.HELLO:
            self._answer_hello(self._connection)
        else:
            self._connection.send(self._answer(tag, header, body))

    def _answer_hello(self, connection: ServerConnection) -> None:
        """Answer HELLO, and report each exit that is not acknowledged."""
        connection.send(encode(Tag.HELLO, self._hello))
        self._server = connection
        self._notices.acknowledged()
        for child in self._children:
            if child.exit is not None:
                self._send_exit(child)

    def _answer(self, tag: int, header: dict[str, Any], body: bytes) -> bytes:
        """Return the REPLY or FAULT to a request."""
        try:
            return encode(Tag.REPLY, {"id": _id(header)} | self._handler(tag)(header, body))
        except _REQUEST_ERRORS as error:
            return _fault(header, error)

    def _handler(self, tag: int) -> Callable[[dict[str, Any], bytes], dict[str, Any]]:
        """Return the method that handles requests with this tag, or raise OSError."""
        if self._server is None:
            raise OSError(errno.EPROTO, "the first frame of a server is HELLO")
        handler = self._requests.get(tag)
        if handler is None:
            raise OSError(errno.ENOSYS, f"this keeper does not know tag {tag}")
        return handler

    def _spawn(self, header: dict[str, Any], _body: bytes) -> dict[str, Any]:
        """Handle SPAWN: start a child, and reply with its pid, start time and terminal.

        Raise OSError, with the program and the reason, if it cannot be started.
        """
        request = SpawnRequest(header)
        try:
            child = self._children.spawn(request)
        except OSError as error:
            where = f" ({error.filename})" if error.filename not in (None, request.argv[0]) else ""
            raise OSError(error.errno, f"cannot start {request.argv[0]}: {error.strerror}{where}") from error
        self._notices.expect_answer(child.streams.values())
        return {"pid": child.pid, "started": child.started, "tty": child.tty}

    def _write_input(self, header: dict[str, Any], body: bytes) -> bytes:
        """Write the body to a child and return the reply, whose JSON is written by hand to be fast."""
        try:
            request_id = integer(header["id"])
            child = self._children.find_running(header["worker"], header["run"])
            last = child.input.accept(short_name(header["writer"]), integer(header["n"]), body)
        except _REQUEST_ERRORS as error:
            return _fault(header, error)
        self._notices.expect_answer(child.streams.values())  # its answer is not read yet
        self._loop.expect_answer()
        return encode_json_header(Tag.REPLY, f'{{"id":{request_id},"last":{last}}}')

    def _resize(self, header: dict[str, Any], _body: bytes) -> dict[str, Any]:
        """Handle RESIZE: set the size of a terminal."""
        self._children.find_running(*_key(header)).resize(*window_size(header))
        return {}

    def _signal(self, header: dict[str, Any], _body: bytes) -> dict[str, Any]:
        """Handle SIGNAL: send a signal to a child."""
        self._children.find_running(*_key(header)).signal(integer(header["signal"]))
        return {}

    def _close_input(self, header: dict[str, Any], _body: bytes) -> dict[str, Any]:
        """Handle CLOSE_INPUT: close a child's stdin."""
        self._children.find_running(*_key(header)).close_input()
        return {}

    def _status(self, _header: dict[str, Any], _body: bytes) -> dict[str, Any]:
        """Handle STATUS: describe all children."""
        return {"children": [child.describe() for child in self._children]}

    def _consumed(self, header: dict[str, Any], _body: bytes) -> dict[str, Any]:
        """Handle CONSUMED: free a child's stdout below an offset."""
        self._children.find(*_key(header)).consumed(integer(header["offset"]))
        return {}

    def _ack_exit(self, header: dict[str, Any], _body: bytes) -> dict[str, Any]:
        """Handle ACK_EXIT: forget a child that has ended."""
        self._children.release(*_key(header))
        return {}

    def _remove_spools(self, header: dict[str, Any], _body: bytes) -> dict[str, Any]:
        """Handle FORGET: remove the spools of a worker."""
        self._children.remove_spools(worker_name(header["worker"]))
        return {}

    def _on_exit(self, child: Child) -> None:
        """Send the exit of a child; it says also how far its streams have grown."""
        self._notices.discard(child.streams.values())
        self._send_exit(child)

    def _send_exit(self, child: Child) -> None:
        """Report an ended child to the server, if one is connected."""
        if self._server is not None and child.exit is not None:
            exit_ = {"worker": child.worker, "run": child.run, **child.exit, "ends": child.ends}
            self._server.send(encode(Tag.EXIT, exit_))

    def _send_pending(self) -> None:
        """Send the next notice and the queued frames; called after each iteration of the loop."""
        if self._server is not None and self._notices.grown and (notice := self._notices.next()):
            self._server.send_before_delayed(notice)
            self._loop.stop_spinning()
        if self._connection is not None and self._connection.needs_flush:
            self._connection.flush()

    def _schedule_idle_end(self) -> None:
        """Let the keeper end after some time without a server and without children."""
        self._idle_since = time.monotonic()
        self._loop.call_later(self._idle_timeout, self._end_if_idle)

    def _end_if_idle(self) -> None:
        """Stop the loop if there was no server and no child for the whole timeout."""
        idle = self._connection is None and not self._children
        if idle and time.monotonic() - self._idle_since >= self._idle_timeout:
            self._loop.stop()


def _fault(header: dict[str, Any], error: Exception) -> bytes:
    """Return the FAULT that answers a request which raised an error."""
    fault: dict[str, Any] = {"id": _id(header)}
    match error:
        case InputGap():
            fault |= {"errno": error.errno, "message": error.strerror, "last": error.last}
        case OSError():
            fault |= {"errno": error.errno, "message": str(error.strerror)[:MAX_MESSAGE_LENGTH]}
        case _:
            message = f"{type(error).__name__}: {error}"[:MAX_MESSAGE_LENGTH]
            fault |= {"errno": errno.EINVAL, "message": message}
    return encode(Tag.FAULT, fault)


def _id(header: dict[str, Any]) -> int | None:
    """Return the number of a request, or None: other values could be too long or too deep for a reply."""
    id_ = header.get("id")
    return id_ if type(id_) is int else None


def _key(header: dict[str, Any]) -> tuple[str, int]:
    """Return worker and run, which name a child."""
    return header["worker"], header["run"]


def _boot_id() -> str:
    """Return the kernel's random id of the current boot."""
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        return file.read().strip()
