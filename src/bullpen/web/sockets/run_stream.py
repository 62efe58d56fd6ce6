"""One viewer of a terminal: where it stands, what it may be sent, when it gets a fresh screen instead.

A viewer that draws says how far it has drawn; beyond a window it gets nothing, and when it comes back far
behind it gets the screen as it is now. So a slow viewer slows only itself.
"""

import asyncio
import codecs
from collections import deque
from functools import partial

from ...domain.errors import BullpenError
from ...intervals import intervals
from ...keeper.spool import SpoolGone
from ...wire.browser import iso
from ...wire.json import encode
from ...workers.children import refusal
from ...workers.terminal import TerminalActivity, TerminalWorker
from ...workers.window import WindowSize
from ..websocket import Frame, text_frame
from .acks import InputAcks
from .admission import AdmittedSocket
from .output_formats import OutputFormat

FRAME = 512 << 10  # bytes in one frame at most; many clients take no more than a MiB
AT_ONCE = 2 << 20  # bytes sent without a pause
WINDOW = 2 << 20  # bytes sent and not yet drawn
BEHIND = 16 << 20  # a drawing viewer further back than this gets a screen instead of the bytes
PACE = 0.002  # seconds of that pause
_HEARTBEAT_FRAME = text_frame(b'{"type":"heartbeat"}')


class RunStream:
    """Sends one run of a terminal to one socket, from where the viewer stands."""

    def __init__(
        self, name: str, socket: AdmittedSocket, terminal: TerminalWorker, form: OutputFormat
    ) -> None:
        self.name = name
        self._socket = socket
        self._terminal = terminal
        self._form = form
        self._wake = asyncio.Event()
        self._at_rest = False  # nothing is due, and nobody has said otherwise
        self._sent = 0
        self._unpaused = 0  # bytes sent since the last pause
        self._drawn: int | None = None  # None until the viewer says it draws
        self._size_told = False
        self._end_told = False
        self._doing_told: TerminalActivity | None = None
        self._acks = InputAcks(self._acknowledge)
        self._refused: deque[BullpenError] = deque()

    @property
    def run_number(self) -> int:
        return self._terminal.worker.run

    def drew(self, offset: int) -> None:
        """The viewer has drawn everything before this offset."""
        self._drawn = max(self._drawn or 0, min(offset, self._sent))
        if self._sent < self._terminal.recording.end:
            self._rouse()

    async def begun(self) -> None:
        await self._terminal.begun()

    def write(self, writer: str, n: int, data: bytes, *, acknowledge: bool) -> None:
        """Types; does not wait until the keeper has it, so that the next key is not held up."""
        taken = self._terminal.write(self.name, writer, n, data)
        self._acks.sent()
        taken.add_done_callback(partial(self._taken, n if acknowledge else None))

    async def resize(self, size: WindowSize, *, take: bool = False) -> None:
        await self._terminal.resize(self.name, size, take=take)

    async def show(self, after: int | None) -> None:
        """Sends until a later run takes this one's place; the caller cancels it when the viewer leaves."""
        terminal, recording = self._terminal, self._terminal.recording
        terminal.window.enter(self.name, self._size_changed)
        recording.watch(self._heard, first=True)
        terminal.on_change(self._rouse)
        self._beat()
        try:
            await self._begin(after)
            while not terminal.replaced:
                self._wake.clear()
                if not await self._step():
                    self._at_rest = not self._wake.is_set()
                    await self._wake.wait()
                    self._at_rest = False
        finally:
            self._next_beat.cancel()
            terminal.off_change(self._rouse)
            recording.unwatch(self._heard)
            terminal.window.leave(self.name)

    def _beat(self) -> None:
        """Says that the server is there, to who hears of nothing else."""
        if self._at_rest:
            self._socket.push(_HEARTBEAT_FRAME)
        self._next_beat = asyncio.get_running_loop().call_later(intervals().heartbeat, self._beat)

    async def _begin(self, after: int | None) -> None:
        recording = self._terminal.recording
        if after is None or not recording.start <= after <= recording.end:
            await self._send_history()
        else:
            self._sent = after

    async def _step(self) -> bool:
        """One thing that is due; False when nothing is."""
        if self._refused:
            await self._socket.send_error(self._refused.popleft())
            return True
        if self._acks.due:
            self._acks.due = False
            await self._socket.send_frame(self._ack_frame())
            return True
        if await self._send_state():
            return True
        recording = self._terminal.recording
        if self._sent < recording.end:
            return await self._send_output()
        if self._terminal.ended is not None and not self._end_told:
            self._acks.hurry()  # nothing is acknowledged after the end
            if not self._acks.due:
                await self._send_end()
            return True
        return False

    def _heard(self) -> None:
        """There is more output: it goes out at once where nothing else is due, which spares waking a task."""
        if not (self._at_rest and self._push_output()):
            self._rouse()

    def _rouse(self) -> None:
        self._at_rest = False
        self._wake.set()

    def _acknowledge(self) -> None:
        """The same for keys that were taken."""
        if self._at_rest and self._socket.push(self._ack_frame()):
            self._acks.due = False
        else:
            self._rouse()

    def _ack_frame(self) -> Frame:
        return text_frame(encode({"type": "ack", "n": self._acks.last}))

    def _push_output(self) -> bool:
        """Sends all there is; False when that is too much, or some of it has to wait."""
        recording = self._terminal.recording
        if recording.end - self._sent > AT_ONCE:
            return False
        draws = self._drawn is not None
        if draws and self._is_behind:
            return False
        while self._sent < recording.end:
            if draws and self._may_not_be_sent:
                return False
            try:
                data = recording.read(self._sent, FRAME)
            except (SpoolGone, OSError):
                return False
            frame = self._form.frame(self._sent, data)
            if not data or frame is None or not self._socket.push(frame):
                return False
            self._sent += len(data)
        return True

    @property
    def _may_not_be_sent(self) -> bool:
        """It has not drawn what it got."""
        return self._drawn is not None and self._sent - self._drawn >= WINDOW

    @property
    def _is_behind(self) -> bool:
        return self._drawn is not None and self._terminal.recording.end - self._drawn > BEHIND

    async def _send_output(self) -> bool:
        recording = self._terminal.recording
        if self._may_not_be_sent:
            return False
        if self._is_behind:
            await self._send_history()
            return True
        try:
            data = recording.read(self._sent, FRAME)
        except SpoolGone:
            await self._send_history()
            return True
        await self._form.send_output(self._socket, self._sent, data)
        self._sent += len(data)
        await self._pause_after(len(data))
        return True

    async def _pause_after(self, sent: int) -> None:
        """Others have their turn, but not too often: who reads along (`Ear`) takes as much at a time."""
        self._unpaused += sent
        if self._sent >= self._terminal.recording.end:
            self._unpaused = 0
        elif self._unpaused >= AT_ONCE:
            self._unpaused = 0
            await asyncio.sleep(PACE)

    async def _send_history(self) -> None:
        history = await self._terminal.history()
        text, rest = _whole_characters(history.data)
        self._sent = history.offset - rest  # half a character comes again, with its other half
        if self._drawn is not None:
            self._drawn = self._sent
        await self._socket.send(
            {
                "type": "history",
                "run": self._terminal.worker.run,
                "offset": self._sent,
                "cols": history.cols,
                "rows": history.rows,
                "data": text,
            }
        )

    async def _send_state(self) -> bool:
        """What is new beside the output: the window's size, what an agent does."""
        if not self._size_told:
            await self._send_size()
        elif self._terminal.doing != self._doing_told:
            await self._send_activity()
        else:
            return False
        return True

    async def _send_size(self) -> None:
        self._size_told = True
        window = self._terminal.window
        cols, rows = window.size
        await self._socket.send(
            {"type": "size", "cols": cols, "rows": rows, "owner": window.owner == self.name}
        )

    async def _send_activity(self) -> None:
        doing = self._doing_told = self._terminal.doing
        assert doing is not None
        await self._socket.send(
            {"type": "activity", "state": doing.activity, "why": doing.why, "since": iso(doing.since)}
        )

    async def _send_end(self) -> None:
        self._end_told = True
        ended = self._terminal.ended
        assert ended is not None
        await self._socket.send(
            {"type": "exit", "exitCode": ended.code, "signal": ended.signal, "offset": self._sent}
        )

    def _taken(self, n: int | None, taken: asyncio.Future[int]) -> None:
        """The keeper has said what became of some input."""
        error = None if taken.cancelled() else taken.exception()
        self._acks.taken(None if taken.cancelled() or error else n)
        if error:
            self._refused.append(refusal(error))
            self._rouse()

    def _size_changed(self) -> None:
        self._size_told = False
        self._rouse()


def _whole_characters(data: bytes) -> tuple[str, int]:
    """The text, and how many bytes at its end are only the beginning of a character."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    text = decoder.decode(data)
    return text, len(decoder.getstate()[0])
