"""Send the output of one run of a terminal to one viewer, with flow control.

A viewer may acknowledge how far it has drawn. While a full window is not drawn, it gets no output; if it
falls far behind, it gets the current screen instead. So a slow viewer delays only itself.
"""

import asyncio
import codecs
from collections import deque
from functools import partial

from ...domain.errors import BullpenError
from ...intervals import intervals
from ...keeper.spool import SpoolGone
from ...wire.browser import iso_time
from ...wire.json import encode
from ...workers.children import translate_keeper_error
from ...workers.terminal import TerminalActivity, TerminalWorker
from ...workers.window import WindowSize
from ..websocket import Frame, text_frame
from .acks import InputAcks
from .admission import AdmittedSocket
from .output_formats import OutputFormat

MAX_FRAME_BYTES = 512 << 10  # many clients accept at most 1 MiB
MAX_BURST_BYTES = 2 << 20  # sent without a pause
WINDOW_BYTES = 2 << 20  # sent and not drawn yet
MAX_LAG_BYTES = 16 << 20  # a viewer further behind gets the screen instead of the output
PAUSE_SECONDS = 0.002  # after a burst
_HEARTBEAT_FRAME = text_frame(b'{"type":"heartbeat"}')


class RunStream:
    """Sends the output, size, activity and end of one run to one socket."""

    def __init__(
        self, viewer_id: str, socket: AdmittedSocket, terminal: TerminalWorker, output_format: OutputFormat
    ) -> None:
        self.viewer_id = viewer_id
        self._socket = socket
        self._terminal = terminal
        self._output_format = output_format
        self._wake = asyncio.Event()
        self._is_waiting = False  # nothing is due to be sent
        self._sent_offset = 0
        self._burst_bytes = 0  # bytes sent since the last pause
        self._drawn_offset: int | None = None  # None until the viewer has acknowledged output
        self._size_sent = False
        self._end_sent = False
        self._activity_sent: TerminalActivity | None = None
        self._acks = InputAcks(self._acknowledge)
        self._input_errors: deque[BullpenError] = deque()

    @property
    def run_number(self) -> int:
        """The number of the run that is sent."""
        return self._terminal.worker.run

    def note_drawn(self, offset: int) -> None:
        """Note that the viewer has drawn all output before this offset."""
        self._drawn_offset = max(self._drawn_offset or 0, min(offset, self._sent_offset))
        if self._sent_offset < self._terminal.recording.end:
            self._wake_up()

    async def wait_started(self) -> None:
        """Wait until the run has started, so that it can take input."""
        await self._terminal.wait_started()

    def write(self, writer: str, n: int, data: bytes, *, acknowledge: bool) -> None:
        """Send input to the keeper without waiting for its answer, so that the next key is not delayed."""
        accepted = self._terminal.write(self.viewer_id, writer, n, data)
        self._acks.note_sent()
        accepted.add_done_callback(partial(self._on_accepted, n if acknowledge else None))

    async def resize(self, size: WindowSize, *, take: bool = False) -> None:
        """Change the window size; `take` makes this viewer the owner of the window."""
        await self._terminal.resize(self.viewer_id, size, take=take)

    async def run(self, after: int | None) -> None:
        """Send until a later run replaces this one. The caller cancels it when the viewer disconnects."""
        terminal, recording = self._terminal, self._terminal.recording
        terminal.window.add_viewer(self.viewer_id, self._on_resize)
        recording.watch(self._on_output, first=True)
        terminal.add_watcher(self._wake_up)
        self._send_heartbeat()
        try:
            await self._send_start(after)
            while not terminal.replaced:
                self._wake.clear()
                if not await self._send_next():
                    self._is_waiting = not self._wake.is_set()
                    await self._wake.wait()
                    self._is_waiting = False
        finally:
            self._heartbeat_timer.cancel()
            terminal.remove_watcher(self._wake_up)
            recording.unwatch(self._on_output)
            terminal.window.remove_viewer(self.viewer_id)

    def _send_heartbeat(self) -> None:
        """Send a heartbeat if nothing else is being sent, and schedule the next."""
        if self._is_waiting:
            self._socket.push(_HEARTBEAT_FRAME)
        self._heartbeat_timer = asyncio.get_running_loop().call_later(
            intervals().heartbeat, self._send_heartbeat
        )

    async def _send_start(self, after: int | None) -> None:
        """Continue from the offset the viewer has, or send the history."""
        recording = self._terminal.recording
        if after is None or not recording.start <= after <= recording.end:
            await self._send_history()
        else:
            self._sent_offset = after

    async def _send_next(self) -> bool:
        """Send one message that is due; return False if there is none."""
        if self._input_errors:
            await self._socket.send_error(self._input_errors.popleft())
            return True
        if self._acks.due:
            self._acks.due = False
            await self._socket.send_frame(self._ack_frame())
            return True
        if await self._send_state():
            return True
        recording = self._terminal.recording
        if self._sent_offset < recording.end:
            return await self._send_output()
        if self._terminal.ended is not None and not self._end_sent:
            self._acks.flush()  # nothing is acknowledged after the end
            if not self._acks.due:
                await self._send_end()
            return True
        return False

    def _on_output(self) -> None:
        """Send new output at once if nothing else is due; else wake the sending task."""
        if not (self._is_waiting and self._push_output()):
            self._wake_up()

    def _wake_up(self) -> None:
        """Wake the sending task."""
        self._is_waiting = False
        self._wake.set()

    def _acknowledge(self) -> None:
        """Send an acknowledgement at once if nothing else is due; else wake the sending task."""
        if self._is_waiting and self._socket.push(self._ack_frame()):
            self._acks.due = False
        else:
            self._wake_up()

    def _ack_frame(self) -> Frame:
        """Return the frame that acknowledges the accepted input."""
        return text_frame(encode({"type": "ack", "n": self._acks.last}))

    def _push_output(self) -> bool:
        """Send all new output at once; return False if it is too much or must wait."""
        recording = self._terminal.recording
        if recording.end - self._sent_offset > MAX_BURST_BYTES:
            return False
        draws = self._drawn_offset is not None
        if draws and self._is_behind:
            return False
        while self._sent_offset < recording.end:
            if draws and self._window_is_full:
                return False
            try:
                data = recording.read(self._sent_offset, MAX_FRAME_BYTES)
            except (SpoolGone, OSError):
                return False
            frame = self._output_format.frame(self._sent_offset, data)
            if not data or frame is None or not self._socket.push(frame):
                return False
            self._sent_offset += len(data)
        return True

    @property
    def _window_is_full(self) -> bool:
        """Return whether the viewer must draw before it gets more output."""
        return self._drawn_offset is not None and self._sent_offset - self._drawn_offset >= WINDOW_BYTES

    @property
    def _is_behind(self) -> bool:
        """Return whether the viewer is so far behind that it gets the screen."""
        return (
            self._drawn_offset is not None
            and self._terminal.recording.end - self._drawn_offset > MAX_LAG_BYTES
        )

    async def _send_output(self) -> bool:
        """Send the next output, or the history; return False if the window is full."""
        recording = self._terminal.recording
        if self._window_is_full:
            return False
        if self._is_behind:
            await self._send_history()
            return True
        try:
            data = recording.read(self._sent_offset, MAX_FRAME_BYTES)
        except SpoolGone:
            await self._send_history()
            return True
        await self._output_format.send_output(self._socket, self._sent_offset, data)
        self._sent_offset += len(data)
        await self._pause_after(len(data))
        return True

    async def _pause_after(self, sent: int) -> None:
        """Pause after a burst, so that other tasks run. `QueryScanner` reads as much at once."""
        self._burst_bytes += sent
        if self._sent_offset >= self._terminal.recording.end:
            self._burst_bytes = 0
        elif self._burst_bytes >= MAX_BURST_BYTES:
            self._burst_bytes = 0
            await asyncio.sleep(PAUSE_SECONDS)

    async def _send_history(self) -> None:
        """Send the current screen as the bytes that draw it."""
        history = await self._terminal.history()
        text, rest = _complete_characters(history.data)
        self._sent_offset = history.offset - rest  # an incomplete character is sent again, complete
        if self._drawn_offset is not None:
            self._drawn_offset = self._sent_offset
        await self._socket.send(
            {
                "type": "history",
                "run": self._terminal.worker.run,
                "offset": self._sent_offset,
                "cols": history.cols,
                "rows": history.rows,
                "data": text,
            }
        )

    async def _send_state(self) -> bool:
        """Send the window size or the activity if it has changed; return whether one was sent."""
        if not self._size_sent:
            await self._send_size()
        elif self._terminal.activity != self._activity_sent:
            await self._send_activity()
        else:
            return False
        return True

    async def _send_size(self) -> None:
        """Send the window size of the terminal, and whether this viewer decides it."""
        self._size_sent = True
        window = self._terminal.window
        cols, rows = window.size
        await self._socket.send(
            {"type": "size", "cols": cols, "rows": rows, "owner": window.owner == self.viewer_id}
        )

    async def _send_activity(self) -> None:
        """Send the current activity of the agent."""
        activity = self._activity_sent = self._terminal.activity
        assert activity is not None
        await self._socket.send(
            {
                "type": "activity",
                "state": activity.activity,
                "why": activity.why,
                "since": iso_time(activity.since),
            }
        )

    async def _send_end(self) -> None:
        """Send how the program has ended; no output follows."""
        self._end_sent = True
        ended = self._terminal.ended
        assert ended is not None
        await self._socket.send(
            {"type": "exit", "exitCode": ended.code, "signal": ended.signal, "offset": self._sent_offset}
        )

    def _on_accepted(self, n: int | None, accepted: asyncio.Future[int]) -> None:
        """Handle the answer of the keeper to input: acknowledge it, or queue its error."""
        error = None if accepted.cancelled() else accepted.exception()
        self._acks.note_accepted(None if accepted.cancelled() or error else n)
        if error:
            self._input_errors.append(translate_keeper_error(error))
            self._wake_up()

    def _on_resize(self) -> None:
        """Let the sender send the changed size, or its changed owner."""
        self._size_sent = False
        self._wake_up()


def _complete_characters(data: bytes) -> tuple[str, int]:
    """Return the text, and how many bytes at the end belong to an incomplete character."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    text = decoder.decode(data)
    return text, len(decoder.getstate()[0])
