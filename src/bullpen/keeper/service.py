"""What a server may ask of the keeper and what it is told: answers, notices of growth, and exits."""

from __future__ import annotations

import errno
import os
import time

from .children import Children
from .frames import IN_FLIGHT, VERSION, Tag, encode, frame
from .input import InputGap
from .link import ServerConnection, ServerListener
from .notices import GrowthNotices
from .spawn import SpawnRequest, integer, short_name, window_size, worker_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Callable
    from typing import Any

    from .child import Child
    from .loop import EventLoop


# What a senseless request may raise. MemoryError: the limits of a new child are the keeper's for a moment.
_FAULTS = (
    OSError,
    KeyError,
    TypeError,
    ValueError,
    OverflowError,
    AttributeError,
    RecursionError,
    MemoryError,
)
MAX_MESSAGE = 1000  # characters of a fault: it may quote the request, which may be as long as a frame


class KeeperService:
    def __init__(
        self, name: str, listening: socket.socket, spools: int, patience: float, loop: EventLoop
    ) -> None:
        self._hello = {
            "version": VERSION,
            "keeper": name,
            "pid": os.getpid(),
            "boot": _boot_id(),
            "started": time.time(),
            "notices": IN_FLIGHT,
        }
        self._patience = patience  # seconds without server and children until the end
        self._loop = loop
        self._notices = GrowthNotices(loop)
        self._children = Children(spools, loop, self._notices.grown, self._exited)
        self._listener = ServerListener(listening, loop, self._connected)
        self._connection: ServerConnection | None = None
        self._server: ServerConnection | None = None  # the same, once it has said hello
        self._idle_since = time.monotonic()
        self._requests: dict[int, Callable[[dict[str, Any], bytes], dict[str, Any]]] = {
            Tag.SPAWN: self._spawn,
            Tag.RESIZE: self._resize,
            Tag.SIGNAL: self._signal,
            Tag.CLOSE_INPUT: self._close_input,
            Tag.STATUS: self._status,
            Tag.CONSUMED: self._consumed,
            Tag.ACK_EXIT: self._ack_exit,
            Tag.FORGET: self._forget,
        }
        loop.after_turn = self._speak
        self._await_server()

    def _await_server(self) -> None:
        self._connection = self._server = None
        self._listener.open()
        self._rest()

    def _connected(self, connected: socket.socket) -> None:
        self._connection = ServerConnection(connected, self._loop, self._heard, self._await_server)

    def _heard(self, tag: int, header: dict[str, Any], body: bytes) -> None:
        assert self._connection is not None
        if tag == Tag.WRITE and self._server is not None:
            # That it was taken can be said together with what the child says to it.
            self._connection.send_unhurried(self._take_input(header, body))
        elif tag == Tag.SEEN:
            self._notices.seen()
        elif tag == Tag.HELLO:
            self._greet(self._connection)
        else:
            self._connection.send(self._answer(tag, header, body))

    def _greet(self, connection: ServerConnection) -> None:
        connection.send(encode(Tag.HELLO, self._hello))
        self._server = connection
        self._notices.seen()
        for child in self._children:
            if child.exit is not None:
                self._tell_exit(child)

    def _answer(self, tag: int, header: dict[str, Any], body: bytes) -> bytes:
        try:
            return encode(Tag.REPLY, {"id": _id(header)} | self._request(tag)(header, body))
        except _FAULTS as error:
            return _fault(header, error)

    def _request(self, tag: int) -> Callable[[dict[str, Any], bytes], dict[str, Any]]:
        if self._server is None:
            raise OSError(errno.EPROTO, "a server says hello first")
        request = self._requests.get(tag)
        if request is None:
            raise OSError(errno.ENOSYS, f"this keeper does not know tag {tag}")
        return request

    def _spawn(self, header: dict[str, Any], _body: bytes) -> dict[str, Any]:
        order = SpawnRequest(header)
        try:
            child = self._children.spawn(order)
        except OSError as error:
            where = f" ({error.filename})" if error.filename not in (None, order.argv[0]) else ""
            raise OSError(error.errno, f"cannot start {order.argv[0]}: {error.strerror}{where}") from error
        self._notices.expect(child.streams.values())
        return {"pid": child.pid, "started": child.started, "tty": child.tty}

    def _take_input(self, header: dict[str, Any], body: bytes) -> bytes:
        """The answer to a WRITE: JSON made by hand, as a key waits."""
        try:
            request = integer(header["id"])
            child = self._children.running(header["worker"], header["run"])
            last = child.input.take(short_name(header["writer"]), integer(header["n"]), body)
        except _FAULTS as error:
            return _fault(header, error)
        self._notices.expect(child.streams.values())  # what it says to that is not read yet
        self._loop.await_answer()
        return frame(Tag.REPLY, f'{{"id":{request},"last":{last}}}')

    def _resize(self, header: dict[str, Any], _body: bytes) -> dict[str, Any]:
        self._children.running(*_key(header)).resize(*window_size(header))
        return {}

    def _signal(self, header: dict[str, Any], _body: bytes) -> dict[str, Any]:
        self._children.running(*_key(header)).signal(integer(header["signal"]))
        return {}

    def _close_input(self, header: dict[str, Any], _body: bytes) -> dict[str, Any]:
        self._children.running(*_key(header)).close_input()
        return {}

    def _status(self, _header: dict[str, Any], _body: bytes) -> dict[str, Any]:
        return {"children": [child.describe() for child in self._children]}

    def _consumed(self, header: dict[str, Any], _body: bytes) -> dict[str, Any]:
        self._children.find(*_key(header)).consumed(integer(header["offset"]))
        return {}

    def _ack_exit(self, header: dict[str, Any], _body: bytes) -> dict[str, Any]:
        self._children.release(*_key(header))
        return {}

    def _forget(self, header: dict[str, Any], _body: bytes) -> dict[str, Any]:
        self._children.forget(worker_name(header["worker"]))
        return {}

    def _exited(self, child: Child) -> None:
        self._notices.drop(child.streams.values())
        self._tell_exit(child)

    def _tell_exit(self, child: Child) -> None:
        if self._server is not None and child.exit is not None:
            exit_ = {"worker": child.worker, "run": child.run, **child.exit, "ends": child.ends}
            self._server.send(encode(Tag.EXIT, exit_))

    def _speak(self) -> None:
        """After each turn: what has grown, and all that was answered."""
        if self._server is not None and self._notices.grown and (notice := self._notices.next()):
            self._server.send_ahead(notice)
            self._loop.rest()
        if self._connection is not None and self._connection.due:
            self._connection.flush()

    def _rest(self) -> None:
        """Without a server, end once there has been nothing to keep for a while."""
        self._idle_since = time.monotonic()
        self._loop.later(self._patience, self._end_if_idle)

    def _end_if_idle(self) -> None:
        idle = self._connection is None and not self._children
        if idle and time.monotonic() - self._idle_since >= self._patience:
            self._loop.stop()


def _fault(header: dict[str, Any], error: Exception) -> bytes:
    fault: dict[str, Any] = {"id": _id(header)}
    match error:
        case InputGap():
            fault |= {"errno": error.errno, "message": error.strerror, "last": error.last}
        case OSError():
            fault |= {"errno": error.errno, "message": str(error.strerror)[:MAX_MESSAGE]}
        case _:
            fault |= {"errno": errno.EINVAL, "message": f"{type(error).__name__}: {error}"[:MAX_MESSAGE]}
    return encode(Tag.FAULT, fault)


def _id(header: dict[str, Any]) -> int | None:
    """The number of a request; anything else could be too long or too deep for an answer."""
    id_ = header.get("id")
    return id_ if type(id_) is int else None


def _key(header: dict[str, Any]) -> tuple[str, int]:
    return header["worker"], header["run"]


def _boot_id() -> str:
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        return file.read().strip()
