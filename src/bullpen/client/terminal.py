"""A worker's terminal that survives its connections.

Output is known by offset: after a loss it goes on at the first byte not yet received. Input is known by
number under a writer id of our own: it is sent again until acknowledged, so each batch reaches the
program once. One task reads the socket and one writes it; everybody else leaves work for them.
"""

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any
from urllib.parse import quote, urlencode

import msgspec
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed

from ..domain.errors import BullpenError, Conflict, RemoteFault
from . import frames
from .discovery import ServerDiscovery
from .frames import Disconnected, ErrorFrame, ExitFrame, Frame, HistoryFrame, InputAccepted, Reconnected
from .received_frames import MissingOutput, ReceivedFrames
from .reconnecting_socket import ReconnectingSocket
from .tasks import beside
from .unacknowledged_input import UnacknowledgedInput

_MOST_UNSENT = 1024 * 1024
_LAST_WORDS = 1.0  # seconds


class Terminal:
    """Iterate over it for frames; write to it at any time, connected or not."""

    def __init__(
        self, discovery: ServerDiscovery, session_id: str, worker_id: str, after: int | None, may_skip: bool
    ) -> None:
        self.writer = uuid.uuid4().hex
        self._path = f"/ws/session/{quote(session_id, safe='')}/worker/{quote(worker_id, safe='')}"
        self._link = ReconnectingSocket(discovery, self._address)
        self._incoming = ReceivedFrames(after, may_skip)
        self._outgoing = UnacknowledgedInput()
        self._run: int | None = None
        self._size: tuple[int, int] | None = None
        self._redraw = False
        self._work = asyncio.Event()  # for the task that sends
        self._settled = asyncio.Condition()  # input was taken, or never will be
        self._end: BullpenError | None = None  # why no more input is taken

    @property
    def position(self) -> int | None:
        """The offset of the next byte to come; None before the first."""
        return self._incoming.position

    async def write(self, data: bytes) -> None:
        """Types data: at once, unless very much is waiting. `flush` tells when it was taken."""
        await self._until(lambda: self._outgoing.size < _MOST_UNSENT)
        self._outgoing.add(data)
        self._work.set()

    async def flush(self) -> None:
        """Waits until all that was written has reached the keeper."""
        await self._until(lambda: not self._outgoing)

    def resize(self, cols: int, rows: int) -> None:
        """Says how much we can show; said again on every connection."""
        self._size = (cols, rows)
        self._work.set()

    def redraw(self) -> None:
        """Asks for the history anew, because what was drawn is spoilt."""
        self._redraw = True
        self._work.set()

    async def __aiter__(self) -> AsyncIterator[Frame]:
        while (frame := await self._incoming.get()) is not None:
            yield frame
            if self._incoming.drawn(frame):
                self._work.set()
        if self._end is not None and not isinstance(self._end, _TerminalEnded):
            raise self._end

    async def run(self) -> None:
        """Keeps the terminal connected until the program ends or the server refuses."""
        try:
            await self._stay_connected()
            self._end = _TerminalEnded("the program ended before it read everything")
        except BullpenError as error:
            self._end = error
        await self._incoming.put(None)
        await self._settle()

    async def _stay_connected(self) -> None:
        while True:
            socket = await self._link.connect()
            try:
                await self._incoming.put(Reconnected())
                async with beside(self._send(socket)):
                    await self._receive(socket)
                return
            except ConnectionClosed as closed:
                self._link.lost(closed)
            except MissingOutput:
                pass
            finally:
                await socket.close()
            await self._incoming.put(Disconnected())

    async def _receive(self, socket: ClientConnection) -> None:
        """Until the program ends."""
        while True:
            frame = frames.read(await socket.recv())
            if isinstance(frame, HistoryFrame):
                self._check_run(frame)
            if isinstance(frame, InputAccepted):
                self._outgoing.taken(frame.n)
                self._link.progress()
                await self._settle()
            elif isinstance(frame, ErrorFrame) and frame.error == RemoteFault.code:
                raise MissingOutput  # the keeper was out of reach: input goes on where it took the last
            elif frame is not None and (fresh := self._incoming.admit(frame)) is not None:
                self._link.progress()
                await self._incoming.put(fresh)
            if isinstance(frame, ExitFrame):
                await self._hear_out(socket)
                return

    async def _hear_out(self, socket: ClientConnection) -> None:
        """An acknowledgement may come right behind the exit."""
        with suppress(TimeoutError, ConnectionClosed):
            async with asyncio.timeout(_LAST_WORDS):
                while self._outgoing:
                    match frames.read(await socket.recv()):
                        case InputAccepted(n):
                            self._outgoing.taken(n)
                        case ErrorFrame():
                            return

    def _check_run(self, history: HistoryFrame) -> None:
        """Offsets and numbers are those of one run; another one is another terminal."""
        if self._run is not None and history.run != self._run:
            raise Conflict("the program ended and was started again meanwhile; attach to it anew")
        self._run = history.run

    async def _send(self, socket: ClientConnection) -> None:
        sent = 0
        size: tuple[int, int] | None = None
        while True:
            self._work.clear()
            if self._redraw:
                self._link.progress()  # no loss: the next connection need not wait
                await socket.close()
            if self._size is not None and self._size != size:
                size = self._size
                await _say(socket, {"type": "resize", "cols": size[0], "rows": size[1]})
            for batch in self._outgoing.after(sent):
                await _say(socket, batch.message())
                sent = batch.n
            if (offset := self._incoming.acknowledgement()) is not None:
                await _say(socket, {"type": "ack", "offset": offset})
            await self._work.wait()

    def _address(self) -> str:
        query = {"client": self.writer}
        if self._redraw:
            self._redraw = False
            self._incoming.position = None
        if self.position is not None:
            query["after"] = str(self.position)
        if self._run is not None:
            query["run"] = str(self._run)
        return f"{self._path}?{urlencode(query)}"

    async def _settle(self) -> None:
        async with self._settled:
            self._settled.notify_all()

    async def _until(self, true: Callable[[], bool]) -> None:
        async with self._settled:
            await self._settled.wait_for(lambda: true() or self._end is not None)
        if not true() and self._end is not None:
            raise self._end


class _TerminalEnded(Conflict):
    """The end everybody expects: not an error to someone who only reads."""


@asynccontextmanager
async def open_terminal(
    discovery: ServerDiscovery, session_id: str, worker_id: str, after: int | None, may_skip: bool
) -> AsyncIterator[Terminal]:
    terminal = Terminal(discovery, session_id, worker_id, after, may_skip)
    async with beside(terminal.run()):
        yield terminal


async def _say(socket: ClientConnection, message: dict[str, Any]) -> None:
    await socket.send(msgspec.json.encode(message).decode())
