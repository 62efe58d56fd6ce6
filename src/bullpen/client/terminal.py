"""Keep a worker's terminal connected, without losing or repeating output or input.

Output is identified by its offset: a new connection continues at the first byte not yet received. Input is
sent in numbered batches under a writer id until it is acknowledged, so each batch reaches the program once.
One task reads the socket and one task writes to it; callers only set what the writing task has to send.
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
from .tasks import background_task
from .unacknowledged_input import UnacknowledgedInput

_MAX_UNSENT_BYTES = 1024 * 1024
_FINAL_ACKNOWLEDGEMENT_SECONDS = 1.0


class Terminal:
    """A worker's terminal. Iterate over it for frames; write to it at any time, connected or not."""

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
        self._has_work = asyncio.Event()  # wakes the task that sends
        self._input_changed = asyncio.Condition()  # input was acknowledged, or no more will be
        self._end: BullpenError | None = None  # why no more input is accepted

    @property
    def position(self) -> int | None:
        """The offset of the next byte to receive; None before the first."""
        return self._incoming.position

    async def write(self, data: bytes) -> None:
        """Type data into the terminal. Wait only while very much input is unacknowledged; see `flush`."""
        await self._wait_until(lambda: self._outgoing.size < _MAX_UNSENT_BYTES)
        self._outgoing.add(data)
        self._has_work.set()

    async def flush(self) -> None:
        """Wait until the keeper has received all that was written."""
        await self._wait_until(lambda: not self._outgoing)

    def resize(self, cols: int, rows: int) -> None:
        """Set the size that this viewer can display; every new connection sends it again."""
        self._size = (cols, rows)
        self._has_work.set()

    def redraw(self) -> None:
        """Request the history again, because the viewer has drawn over the screen."""
        self._redraw = True
        self._has_work.set()

    async def __aiter__(self) -> AsyncIterator[Frame]:
        while (frame := await self._incoming.get()) is not None:
            yield frame
            if self._incoming.mark_drawn(frame):
                self._has_work.set()
        if self._end is not None and not isinstance(self._end, _TerminalEnded):
            raise self._end

    async def run(self) -> None:
        """Keep the terminal connected until the program ends or the server refuses."""
        try:
            await self._stay_connected()
            self._end = _TerminalEnded("the program ended before it read everything")
        except BullpenError as error:
            self._end = error
        await self._incoming.put(None)
        await self._notify_writers()

    async def _stay_connected(self) -> None:
        """Connect again after every loss; return when the program has ended."""
        while True:
            socket = await self._link.connect()
            try:
                await self._incoming.put(Reconnected())
                async with background_task(self._send(socket)):
                    await self._receive(socket)
                return
            except ConnectionClosed as closed:
                self._link.raise_if_final(closed)
            except MissingOutput:
                pass
            finally:
                await socket.close()
            await self._incoming.put(Disconnected())

    async def _receive(self, socket: ClientConnection) -> None:
        """Queue received frames and note acknowledged input until the program ends.

        Raise MissingOutput if output is missing or the keeper did not answer: a new connection must be made.
        """
        while True:
            frame = frames.parse_frame(await socket.recv())
            if isinstance(frame, HistoryFrame):
                self._check_run(frame)
            if isinstance(frame, InputAccepted):
                self._outgoing.acknowledge(frame.n)
                self._link.reset_backoff()
                await self._notify_writers()
            elif isinstance(frame, ErrorFrame) and frame.error == RemoteFault.code:
                raise MissingOutput  # the keeper did not answer: connect again and send unacknowledged input
            elif frame is not None and (new := self._incoming.remove_known(frame)) is not None:
                self._link.reset_backoff()
                await self._incoming.put(new)
            if isinstance(frame, ExitFrame):
                await self._read_last_acknowledgements(socket)
                return

    async def _read_last_acknowledgements(self, socket: ClientConnection) -> None:
        """Read on for a moment: acknowledgements may follow the exit frame."""
        with suppress(TimeoutError, ConnectionClosed):
            async with asyncio.timeout(_FINAL_ACKNOWLEDGEMENT_SECONDS):
                while self._outgoing:
                    match frames.parse_frame(await socket.recv()):
                        case InputAccepted(n):
                            self._outgoing.acknowledge(n)
                        case ErrorFrame():
                            return

    def _check_run(self, history: HistoryFrame) -> None:
        """Raise Conflict if the program was restarted: offsets and batch numbers belong to one run."""
        if self._run is not None and history.run != self._run:
            raise Conflict("the program ended and was started again meanwhile; attach to it anew")
        self._run = history.run

    async def _send(self, socket: ClientConnection) -> None:
        """Send sizes, input and acknowledgements on one connection, whenever there is something to send."""
        sent = 0
        size: tuple[int, int] | None = None
        while True:
            self._has_work.clear()
            if self._redraw:
                self._link.reset_backoff()  # this is no failure: connect again at once
                await socket.close()
            if self._size is not None and self._size != size:
                size = self._size
                await _send_json(socket, {"type": "resize", "cols": size[0], "rows": size[1]})
            for batch in self._outgoing.after(sent):
                await _send_json(socket, batch.message())
                sent = batch.n
            if (offset := self._incoming.take_acknowledgement()) is not None:
                await _send_json(socket, {"type": "ack", "offset": offset})
            await self._has_work.wait()

    def _address(self) -> str:
        """Return the path of the next connection with the current position; forget it for a redraw."""
        query = {"format": "binary", "client": self.writer}
        if self._redraw:
            self._redraw = False
            self._incoming.position = None
        if self.position is not None:
            query["after"] = str(self.position)
        if self._run is not None:
            query["run"] = str(self._run)
        return f"{self._path}?{urlencode(query)}"

    async def _notify_writers(self) -> None:
        """Wake the callers that wait in `write` or `flush`."""
        async with self._input_changed:
            self._input_changed.notify_all()

    async def _wait_until(self, is_true: Callable[[], bool]) -> None:
        """Wait until a condition is true; raise the error that ended the terminal first."""
        async with self._input_changed:
            await self._input_changed.wait_for(lambda: is_true() or self._end is not None)
        if not is_true() and self._end is not None:
            raise self._end


class _TerminalEnded(Conflict):
    """The program ended: an error for a writer, the normal end for a reader."""


@asynccontextmanager
async def open_terminal(
    discovery: ServerDiscovery, session_id: str, worker_id: str, after: int | None, may_skip: bool
) -> AsyncIterator[Terminal]:
    """Yield a terminal that stays connected during the `async with` block; see `Client.terminal`."""
    terminal = Terminal(discovery, session_id, worker_id, after, may_skip)
    async with background_task(terminal.run()):
        yield terminal


async def _send_json(socket: ClientConnection, message: dict[str, Any]) -> None:
    """Send a JSON message."""
    await socket.send(msgspec.json.encode(message).decode())
