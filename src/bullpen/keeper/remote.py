"""One keeper as the server sees it: requests, answers and notices over one connection."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from itertools import repeat
from typing import Any, TypeVar, cast

from .frames import IN_FLIGHT, VERSION, BadFrame, FrameDecoder, Tag, encode, frame, to_json

Result = TypeVar("Result")
Key = tuple[str, int]  # worker, run
OnOutput = Callable[[str, int, str, int, bytes], None]  # worker, run, stream, its new end, its last bytes
OnExit = Callable[["ExitRecord"], None]
_SEEN = encode(Tag.SEEN, {})
_SEEN_AFTER = 0.05  # seconds


class KeeperLost(Exception):
    """The connection to the keeper has ended."""


class KeeperFault(Exception):
    """The keeper refused a request."""

    def __init__(self, number: int, message: str, last: int | None = None) -> None:
        super().__init__(message)
        self.errno = number
        self.message = message
        self.last = last  # of a refused write: the writer's last number


@dataclass(frozen=True, slots=True)
class SpawnedChild:
    pid: int
    started: int
    tty: str | None


@dataclass(frozen=True, slots=True)
class ExitRecord:
    worker: str
    run: int
    code: int | None
    signal: int | None
    ends: dict[str, int]


@dataclass(frozen=True, slots=True)
class ChildStatus:
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
    """One keeper. Requests are sent when called and may be many at once; the answer is awaited."""

    def __init__(self, on_output: OnOutput, on_exit: OnExit) -> None:
        self._loop = loop = asyncio.get_running_loop()
        self.id = ""
        self.version = 0
        self.pid = 0
        self.boot = ""
        self._in_flight = 1  # notices it sends before it waits for SEEN
        self.children: set[Key] = set()  # those whose exit is not acknowledged
        self.closed: asyncio.Future[None] = loop.create_future()
        self.on_output = on_output
        self._on_exit = on_exit
        self._hello: asyncio.Future[dict[str, Any]] = loop.create_future()
        self._waiting: dict[int, tuple[asyncio.Future[Any], Callable[[dict[str, Any]], Any]]] = {}
        self._number = 0
        self._owed = 0  # notices we have not answered
        self._seen_timer: asyncio.TimerHandle | None = None
        self._decoder = FrameDecoder()
        self._transport: asyncio.Transport | None = None
        self._retiring = False

    async def greet(self) -> list[ChildStatus]:
        """Say hello, once; answered after the dead server's last frames. The children there are now."""
        if self._transport is not None:
            self._transport.write(encode(Tag.HELLO, {"version": VERSION}))
        hello = await self._hello
        self.id, self.version = hello["keeper"], hello["version"]
        self.pid, self.boot = hello["pid"], hello["boot"]
        self._in_flight = hello.get("notices", 1)
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
        answer = await self._call(Tag.SPAWN, header, dict)
        self.children.add((worker, run))
        return SpawnedChild(answer["pid"], answer["started"], answer["tty"])

    def write(self, worker: str, run: int, writer: str, n: int, data: bytes) -> asyncio.Future[int]:
        """Sent at once, in the order of the calls; the writer's last number."""
        names = f'"worker":{_quoted(worker)},"run":{run},"writer":{_quoted(writer)}'
        return self._send(Tag.WRITE, f'{names},"n":{n}', _last, data)

    def resize(self, worker: str, run: int, cols: int, rows: int) -> asyncio.Future[None]:
        """Sent at once, in the order of the calls."""
        return self._call(Tag.RESIZE, {"worker": worker, "run": run, "cols": cols, "rows": rows}, _nothing)

    async def signal(self, worker: str, run: int, signal: int) -> None:
        """To the child's process group."""
        await self._call(Tag.SIGNAL, {"worker": worker, "run": run, "signal": int(signal)}, _nothing)

    async def close_input(self, worker: str, run: int) -> None:
        await self._call(Tag.CLOSE_INPUT, {"worker": worker, "run": run}, _nothing)

    async def status(self) -> list[ChildStatus]:
        answer = await self._call(Tag.STATUS, {}, dict)
        return [_child_status(child) for child in answer["children"]]

    def consumed(self, worker: str, run: int, offset: int) -> asyncio.Future[None]:
        return self._call(Tag.CONSUMED, {"worker": worker, "run": run, "offset": offset}, _nothing)

    async def ack_exit(self, worker: str, run: int) -> None:
        await self._call(Tag.ACK_EXIT, {"worker": worker, "run": run}, _nothing)
        self.children.discard((worker, run))
        if self._retiring:
            await self.retire()

    async def forget(self, worker: str) -> None:
        """Remove all that the worker's children said."""
        await self._call(Tag.FORGET, {"worker": worker}, _nothing)

    async def retire(self) -> None:
        """Leave it alone once it has no child left: it ends by itself when nobody is connected."""
        self._retiring = True
        if not self.children:
            await self.close()

    async def wait_closed(self) -> None:
        await asyncio.shield(self.closed)

    async def close(self) -> None:
        if self._transport is not None:
            self._transport.close()
            await self.wait_closed()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is none by inheritance

    def data_received(self, data: bytes) -> None:
        assert self._transport is not None
        try:
            for tag, header, body in self._decoder.feed(data):
                try:
                    if tag == Tag.NOTICE:
                        self._hear_notice(header, body)
                    else:
                        self._hear(tag, header)
                except Exception as error:  # noqa: BLE001 (of who listens to one child: the others are not lost)
                    about = {"message": "a frame was not understood", "exception": error}
                    self._loop.call_exception_handler(about)
        except BadFrame:
            self._transport.abort()

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        lost = KeeperLost(f"keeper {self.id} is gone")
        for future in (self._hello, *(future for future, _ in self._waiting.values())):
            if not future.done():
                future.set_exception(lost)
        self._waiting.clear()
        self.closed.set_result(None)

    def _owe_seen(self) -> None:
        """SEEN goes with the next request, or once it is waited for: it wakes the keeper."""
        self._owed += 1
        if self._owed >= IN_FLIGHT:
            self._say_seen()
        elif self._owed >= self._in_flight and self._seen_timer is None:  # an older keeper waits already
            self._seen_timer = self._loop.call_later(_SEEN_AFTER, self._say_seen)

    def _say_seen(self) -> None:
        if self._transport is not None:
            self._transport.write(self._with_seen(b""))

    def _with_seen(self, frame: bytes) -> bytes:
        """Behind it: somebody may wait for that."""
        if not self._owed:
            return frame
        self._owed = 0
        if self._seen_timer is not None:
            self._seen_timer.cancel()
            self._seen_timer = None
        return frame + _SEEN

    def _hear(self, tag: int, header: dict[str, Any]) -> None:
        match tag:
            case Tag.EXIT:
                self._on_exit(ExitRecord(**{name: header[name] for name in ExitRecord.__slots__}))
            case Tag.REPLY:
                future, convert = self._waiting.pop(header["id"])
                if not future.done():
                    future.set_result(convert(header))
            case Tag.FAULT if header["id"] is None:  # the connection is closed next
                self._loop.call_exception_handler({"message": f"keeper {self.id}: {header['message']}"})
            case Tag.FAULT:
                future, _ = self._waiting.pop(header["id"])
                if not future.done():
                    future.set_exception(KeeperFault(header["errno"], header["message"], header.get("last")))
            case Tag.HELLO if not self._hello.done():
                self._hello.set_result(header)

    def _hear_notice(self, header: dict[str, Any], body: bytes) -> None:
        """How far each stream has come, and its last bytes where the keeper gave them."""
        ends, position = header["ends"], 0
        try:
            for (worker, run, stream, end), size in zip(ends, header.get("sizes") or repeat(0), strict=False):
                self.on_output(worker, run, stream, end, body[position : position + size])
                position += size
        finally:
            self._owe_seen()  # after somebody's echo has gone out; whatever became of it, the keeper waits

    def _call(
        self, tag: Tag, header: dict[str, Any], convert: Callable[[dict[str, Any]], Result]
    ) -> asyncio.Future[Result]:
        return self._send(tag, to_json(header)[1:-1], convert)

    def _send(
        self, tag: Tag, fields: str, convert: Callable[[dict[str, Any]], Result], body: bytes = b""
    ) -> asyncio.Future[Result]:
        """A request whose header has these fields, as JSON."""
        future: asyncio.Future[Result] = self._loop.create_future()
        if self._transport is None:
            future.set_exception(KeeperLost(f"keeper {self.id} is gone"))
            return future
        self._number += 1
        header = f'{{"id":{self._number},{fields}}}' if fields else f'{{"id":{self._number}}}'
        self._transport.write(self._with_seen(frame(tag, header, body)))
        self._waiting[self._number] = (future, convert)
        return future


def _nothing(_: dict[str, Any]) -> None:
    return None


def _last(answer: dict[str, Any]) -> int:
    return int(answer["last"])


_quoted = lru_cache(to_json)  # names of workers and writers come with every key


def _child_status(child: dict[str, Any]) -> ChildStatus:
    known = {name: child[name] for name in ChildStatus.__slots__}
    if child["exit"] is not None:
        known["exit"] = ExitRecord(child["worker"], child["run"], **child["exit"], ends=child["ends"])
    return ChildStatus(**known)
