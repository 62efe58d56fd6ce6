"""Talk to one keeper from the server: requests, replies, notices and exits over one connection."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from itertools import repeat
from typing import Any, TypeVar, cast

from .frames import (
    MAX_NOTICES_IN_FLIGHT,
    VERSION,
    BadFrame,
    FrameDecoder,
    Tag,
    encode,
    encode_json_header,
    to_json,
)

Result = TypeVar("Result")
ChildKey = tuple[str, int]  # worker, run
OnOutput = Callable[[str, int, str, int, bytes], None]  # worker, run, stream, its new end, its last bytes
OnExit = Callable[["ExitRecord"], None]
_SEEN = encode(Tag.SEEN, {})
_MAX_SEEN_DELAY = 0.05  # seconds


class KeeperLost(Exception):
    """The connection to the keeper has ended."""


class KeeperFault(Exception):
    """The keeper refused a request."""

    def __init__(self, number: int, message: str, last: int | None = None) -> None:
        super().__init__(message)
        self.errno = number
        self.message = message
        self.last = last  # the writer's last accepted number, if an input was refused


@dataclass(frozen=True, slots=True)
class SpawnedChild:
    """The process of a new child, and the name of its terminal if it has one."""

    pid: int
    started: int
    tty: str | None


@dataclass(frozen=True, slots=True)
class ExitRecord:
    """How a child ended, and the final length of each of its outputs."""

    worker: str
    run: int
    code: int | None
    signal: int | None
    ends: dict[str, int]


@dataclass(frozen=True, slots=True)
class ChildStatus:
    """What a keeper reports of one child: see STATUS in docs/keeper.md."""

    worker: str
    run: int
    nonce: str
    pid: int
    started: int
    tty: str | None
    cols: int
    rows: int
    ends: dict[str, int]
    starts: dict[str, int]
    writers: dict[str, int]
    exit: ExitRecord | None


class Keeper(asyncio.Protocol):
    """A connection to one keeper. A request is sent when its method is called; its reply is awaited.

    Several requests may be under way. A method raises KeeperFault if the keeper refuses the request, and
    KeeperLost if the connection ends first.
    """

    def __init__(self, on_output: OnOutput, on_exit: OnExit) -> None:
        self._loop = loop = asyncio.get_running_loop()
        self.id = ""
        self.version = 0
        self.pid = 0
        self.boot = ""
        self._max_in_flight = 1  # notices that this keeper sends before it waits for SEEN
        self.children: set[ChildKey] = set()  # children whose exit is not acknowledged
        self.closed: asyncio.Future[None] = loop.create_future()
        self.on_output = on_output
        self._on_exit = on_exit
        self._hello: asyncio.Future[dict[str, Any]] = loop.create_future()
        self._pending: dict[int, tuple[asyncio.Future[Any], Callable[[dict[str, Any]], Any]]] = {}
        self._number = 0
        self._unacknowledged = 0  # notices received since the last SEEN
        self._seen_timer: asyncio.TimerHandle | None = None
        self._decoder = FrameDecoder()
        self._transport: asyncio.Transport | None = None
        self._retiring = False

    async def handshake(self) -> list[ChildStatus]:
        """Exchange HELLO and return the children. The keeper answers after the frames of the last server."""
        if self._transport is not None:
            self._transport.write(encode(Tag.HELLO, {"version": VERSION}))
        hello = await self._hello
        self.id, self.version = hello["keeper"], hello["version"]
        self.pid, self.boot = hello["pid"], hello["boot"]
        self._max_in_flight = hello.get("notices", 1)
        children = await self.status()
        self.children = {(child.worker, child.run) for child in children}
        return children

    async def spawn(
        self,
        worker: str,
        run: int,
        *,
        nonce: str,
        argv: Iterable[str],
        env: dict[str, str],
        cwd: str | os.PathLike[str],
        tty: bool,
        cols: int = 80,
        rows: int = 24,
        limits: dict[str, int] | None = None,
        umask: int | None = None,
    ) -> SpawnedChild:
        """Start a child, or return the one that was started with the same nonce."""
        header: dict[str, Any] = {
            "worker": worker,
            "run": run,
            "nonce": nonce,
            "argv": list(argv),
            "env": env,
            "cwd": os.fspath(cwd),
            "tty": tty,
            "cols": cols,
            "rows": rows,
            "limits": limits or {},
        }
        if umask is not None:
            header["umask"] = umask
        reply = await self._call(Tag.SPAWN, header, dict)
        self.children.add((worker, run))
        return SpawnedChild(reply["pid"], reply["started"], reply["tty"])

    def write(self, worker: str, run: int, writer: str, n: int, data: bytes) -> asyncio.Future[int]:
        """Send input number `n` of a writer at once, in the order of the calls.

        The result is the writer's last accepted number.
        """
        names = f'"worker":{_quoted(worker)},"run":{run},"writer":{_quoted(writer)}'
        return self._send(Tag.WRITE, f'{names},"n":{n}', _last_number, data)

    def resize(self, worker: str, run: int, cols: int, rows: int) -> asyncio.Future[None]:
        """Send a new window size at once, in the order of the calls."""
        return self._call(Tag.RESIZE, {"worker": worker, "run": run, "cols": cols, "rows": rows}, _nothing)

    async def signal(self, worker: str, run: int, signal: int) -> None:
        """Send a signal to the child's process group."""
        await self._call(Tag.SIGNAL, {"worker": worker, "run": run, "signal": int(signal)}, _nothing)

    async def close_input(self, worker: str, run: int) -> None:
        """Close the stdin of a child after its queued input; do nothing to a terminal."""
        await self._call(Tag.CLOSE_INPUT, {"worker": worker, "run": run}, _nothing)

    async def status(self) -> list[ChildStatus]:
        """Return all children whose exit is not acknowledged."""
        reply = await self._call(Tag.STATUS, {}, dict)
        return [_child_status(child) for child in reply["children"]]

    def consumed(self, worker: str, run: int, offset: int) -> asyncio.Future[None]:
        """Let the keeper remove the stdout below `offset`: the server needs it no more."""
        return self._call(Tag.CONSUMED, {"worker": worker, "run": run, "offset": offset}, _nothing)

    async def ack_exit(self, worker: str, run: int) -> None:
        """Let the keeper forget a child that has ended."""
        await self._call(Tag.ACK_EXIT, {"worker": worker, "run": run}, _nothing)
        self.children.discard((worker, run))
        if self._retiring:
            await self.retire()

    async def remove_spools(self, worker: str) -> None:
        """Remove the spools of all children of a worker."""
        await self._call(Tag.FORGET, {"worker": worker}, _nothing)

    async def retire(self) -> None:
        """Close the connection now, or when the last child is gone. The keeper then ends by itself.

        Return at once, without waiting for the children.
        """
        self._retiring = True
        if not self.children:
            await self.close()

    async def wait_closed(self) -> None:
        """Wait until the connection has ended, whichever side ended it."""
        await asyncio.shield(self.closed)

    async def close(self) -> None:
        """Close the connection and wait for its end; the keeper and its children continue."""
        if self._transport is not None:
            self._transport.close()
            await self.wait_closed()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's transport is no subclass

    def data_received(self, data: bytes) -> None:
        """Process the frames in the data; close the connection if there is something else."""
        assert self._transport is not None
        try:
            for tag, header, body in self._decoder.feed(data):
                try:
                    if tag == Tag.NOTICE:
                        self._receive_notice(header, body)
                    else:
                        self._receive(tag, header)
                except Exception as error:  # noqa: BLE001 (the error of one child's callback must not lose the other children)
                    context = {"message": "a frame of the keeper could not be processed", "exception": error}
                    self._loop.call_exception_handler(context)
        except BadFrame:
            self._transport.abort()

    def connection_lost(self, error: Exception | None) -> None:
        """Fail all pending requests with KeeperLost, and complete `closed`."""
        self._transport = None
        lost = KeeperLost(f"keeper {self.id} is gone")
        for future in (self._hello, *(future for future, _ in self._pending.values())):
            if not future.done():
                future.set_exception(lost)
        self._pending.clear()
        self.closed.set_result(None)

    def _acknowledge_notice(self) -> None:
        """Send SEEN when the keeper waits for it, else with the next request.

        A separate frame would wake the keeper.
        """
        self._unacknowledged += 1
        if self._unacknowledged >= MAX_NOTICES_IN_FLIGHT:
            self._send_seen()
        elif self._unacknowledged >= self._max_in_flight and self._seen_timer is None:  # an older keeper
            self._seen_timer = self._loop.call_later(_MAX_SEEN_DELAY, self._send_seen)

    def _send_seen(self) -> None:
        """Acknowledge the received notices, unless that was done with another frame."""
        if self._transport is not None:
            self._transport.write(self._with_seen(b""))

    def _with_seen(self, frame: bytes) -> bytes:
        """Return the frame with SEEN behind it, if a notice is unacknowledged."""
        if not self._unacknowledged:
            return frame
        self._unacknowledged = 0
        if self._seen_timer is not None:
            self._seen_timer.cancel()
            self._seen_timer = None
        return frame + _SEEN

    def _receive(self, tag: int, header: dict[str, Any]) -> None:
        """Process a frame other than a notice: complete the request that it answers, or report an exit."""
        match tag:
            case Tag.EXIT:
                self._on_exit(ExitRecord(**{name: header[name] for name in ExitRecord.__slots__}))
            case Tag.REPLY:
                future, convert = self._pending.pop(header["id"])
                if not future.done():
                    future.set_result(convert(header))
            case Tag.FAULT if header["id"] is None:  # the connection is closed next
                self._loop.call_exception_handler({"message": f"keeper {self.id}: {header['message']}"})
            case Tag.FAULT:
                future, _ = self._pending.pop(header["id"])
                if not future.done():
                    future.set_exception(KeeperFault(header["errno"], header["message"], header.get("last")))
            case Tag.HELLO if not self._hello.done():
                self._hello.set_result(header)

    def _receive_notice(self, header: dict[str, Any], body: bytes) -> None:
        """Report the new end of each stream, with its last bytes if the keeper sent them."""
        ends, position = header["ends"], 0
        try:
            for (worker, run, stream, end), size in zip(ends, header.get("sizes") or repeat(0), strict=False):
                self.on_output(worker, run, stream, end, body[position : position + size])
                position += size
        finally:
            self._acknowledge_notice()  # after the echo was passed on, and also after an error

    def _call(
        self, tag: Tag, header: dict[str, Any], convert: Callable[[dict[str, Any]], Result]
    ) -> asyncio.Future[Result]:
        """Send a request with this header; the result is the converted reply."""
        return self._send(tag, to_json(header)[1:-1], convert)

    def _send(
        self, tag: Tag, fields: str, convert: Callable[[dict[str, Any]], Result], body: bytes = b""
    ) -> asyncio.Future[Result]:
        """Send a request whose header has these fields, written as JSON; return the future of its reply."""
        future: asyncio.Future[Result] = self._loop.create_future()
        if self._transport is None:
            future.set_exception(KeeperLost(f"keeper {self.id} is gone"))
            return future
        self._number += 1
        header = f'{{"id":{self._number},{fields}}}' if fields else f'{{"id":{self._number}}}'
        self._transport.write(self._with_seen(encode_json_header(tag, header, body)))
        self._pending[self._number] = (future, convert)
        return future


def _nothing(_: dict[str, Any]) -> None:
    """Return None: the reply has no result."""


def _last_number(reply: dict[str, Any]) -> int:
    """Return the last accepted number in the reply to a write."""
    return int(reply["last"])


_quoted = lru_cache(to_json)  # the names of worker and writer are sent with every keystroke


def _child_status(child: dict[str, Any]) -> ChildStatus:
    """Return the status of a child from the fields in a STATUS reply."""
    fields = {name: child[name] for name in ChildStatus.__slots__}
    if child["exit"] is not None:
        fields["exit"] = ExitRecord(child["worker"], child["run"], **child["exit"], ends=child["ends"])
    return ChildStatus(**fields)
