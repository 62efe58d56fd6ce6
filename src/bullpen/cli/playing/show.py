"""Play a recording in the terminal, controlled by keys."""

import asyncio
import os
import sys
from datetime import UTC, datetime

from ... import clock
from ...client import Event as ClientEvent
from ...domain.events import Event
from ...log.replay import NANOSECONDS_PER_SECOND, PlaybackPace, ReplayPlayer
from ...log.timeline import find_markers
from ...log.tracks import ChatMoment, Moment
from ..event_line import describe
from ..terminal.filter import OutputFilter
from ..terminal.plain import PlainTextConverter
from ..terminal.tty import Tty
from ..text import shows_colours
from .countdown import PausableTimer
from .keys import PlayerKey, keys_in

MARKER_TYPES = ("user_prompt", "permission", "question", "error", "worker_failed", "turn_end")
JUMP_NANOSECONDS = 5 * NANOSECONDS_PER_SECOND
NANOSECONDS_PER_MILLISECOND = 1_000_000
SPEEDS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
_CLEAR = b"\x1b[0m\x1b[H\x1b[2J\x1b[3J"


class TerminalPlayer:
    """Shows a recording: only the terminal `worker_id`, as it looked, or else everything as lines."""

    def __init__(self, player: ReplayPlayer, pace: PlaybackPace, worker_id: str | None) -> None:
        self._player = player
        self._pace = pace
        self._worker_id = worker_id
        self._filter = OutputFilter()
        self._plain: dict[tuple[str, int], PlainTextConverter] = {}
        self._keys: asyncio.Queue[PlayerKey] = asyncio.Queue()
        self._countdown = PausableTimer()
        self._now = player.next_time or player.end_time  # the position, on the clock of the recording

    async def run(self) -> None:
        """Play until the user quits; without a terminal, play once to the end."""
        if not (os.isatty(sys.stdin.fileno()) and os.isatty(sys.stdout.fileno())):
            async for moment in self._player.play(self._pace):
                self._write(self._draw(moment))
            return
        tty = Tty("print it with: bullpen logs")
        with tty.raw(), tty.listening(self._queue_keys, lambda: None):
            await self._play()
        self._write(self._filter.restore() + b"\n")

    def _queue_keys(self, data: bytes) -> None:
        """Queue the commands of typed keys."""
        for key in keys_in(data):
            self._keys.put_nowait(key)

    async def _play(self) -> None:
        """Show one moment after the other when it is due, and handle keys in between."""
        self._countdown.restart(0)
        while True:
            at_end = self._player.next_time is None  # the user can still go back
            key = await self._next_key(None if at_end else self._countdown.deadline)
            if key is PlayerKey.QUIT:
                return
            if key is None:
                self._next()
            else:
                self._handle_key(key)

    async def _next_key(self, until: float | None) -> PlayerKey | None:
        """Return the next key, or None if there is none until a time."""
        if until is not None and until <= clock.monotonic() and self._keys.empty():
            await asyncio.sleep(0)
            return None
        try:
            async with asyncio.timeout(None if until is None else max(0, until - clock.monotonic())):
                return await self._keys.get()
        except TimeoutError:
            return None

    def _handle_key(self, key: PlayerKey) -> None:
        """Execute the command of a key."""
        match key:
            case PlayerKey.PAUSE:
                self._countdown.toggle_pause()
            case PlayerKey.STEP:
                self._next()
                return
            case PlayerKey.FASTER | PlayerKey.SLOWER:
                self._change_speed(1 if key is PlayerKey.FASTER else -1)
            case PlayerKey.FORWARD | PlayerKey.BACK:
                self._jump(JUMP_NANOSECONDS if key is PlayerKey.FORWARD else -JUMP_NANOSECONDS)
            case PlayerKey.START:
                self._go_to(self._player.start_time)
            case PlayerKey.NEXT_MARK:
                self._go_to_next_mark()
        self._show_position()

    def _next(self) -> None:
        """Show the next moment."""
        moment = self._player.next()
        if moment is not None:
            self._write(self._draw(moment))
            self._now = moment.time
            self._countdown.add(self._seconds_to_next())

    def _seconds_to_next(self) -> float:
        """Return the seconds from the current position to the next moment, at the current speed."""
        due = self._player.next_time
        return 0.0 if due is None else self._pace.seconds(self._now, due)

    def _change_speed(self, step: int) -> None:
        """Select the next higher or lower speed."""
        nearest = min(SPEEDS, key=lambda speed: abs(speed - self._pace.speed))
        index = min(max(SPEEDS.index(nearest) + step, 0), len(SPEEDS) - 1)
        self._countdown.scale(self._pace.speed / SPEEDS[index])
        self._pace.speed = SPEEDS[index]

    def _jump(self, distance: int) -> None:
        """Move the position by nanoseconds, within the recording."""
        self._go_to(min(max(self._now + distance, self._player.start_time), self._player.end_time))

    def _go_to_next_mark(self) -> None:
        """Go past the next marked event, so that the following call finds another one."""
        events = self._player.recorded.events
        for index in range(events.index_of_seq(self._player.seq + 1), len(events)):
            if events.type(index) in MARKER_TYPES and find_markers([events.event(index)]):
                self._go_to(events.times[index] * NANOSECONDS_PER_MILLISECOND)
                self._player.seek_seq(events.seqs[index])
                self._next()
                return

    def _go_to(self, time: int) -> None:
        """Go to a time. A single terminal is drawn again as it was then; lines are not repeated."""
        self._player.seek_time(time)
        self._now = time
        self._countdown.restart(self._seconds_to_next())
        if self._worker_id is None:
            return
        self._write(self._filter.restore() + _CLEAR)
        for data in self._player.output_before(self._worker_id):
            self._write(self._filter.feed(data))

    def _show_position(self) -> None:
        """Show position and speed as a line; with a single terminal, in the title of the window."""
        start = self._player.start_time
        position = f"{_format_time(self._now - start)} of {_format_time(self._player.end_time - start)}"
        text = f"{position}, x{self._pace.speed:g}{', paused' if self._countdown.paused else ''}"
        line = f"\x1b]2;{text}\x07" if self._worker_id else f"-- {text} --\r\n"
        self._write(line.encode())

    def _draw(self, moment: Moment) -> bytes:
        """Return the bytes that show a moment."""
        if isinstance(moment, ChatMoment):
            return b"" if self._worker_id else f"{describe(_to_client_event(moment.event))}\r\n".encode()
        if self._worker_id:
            return self._filter.feed(moment.data) if moment.worker_id == self._worker_id else b""
        plain = self._plain.setdefault((moment.worker_id, moment.run), PlainTextConverter(shows_colours()))
        return plain.feed(moment.data).replace(b"\n", b"\r\n")

    def _write(self, data: bytes) -> None:
        """Write bytes to the terminal and flush them."""
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()


def _format_time(nanoseconds: int) -> str:
    """Return nanoseconds as minutes and seconds."""
    minutes, seconds = divmod(nanoseconds // NANOSECONDS_PER_SECOND, 60)
    return f"{minutes}:{seconds:02d}"


def _to_client_event(event: Event) -> ClientEvent:
    """Convert a recorded event to the type that the client uses."""
    return ClientEvent(
        seq=event.seq,
        type=event.type,
        timestamp=datetime.fromtimestamp(event.timestamp / 1000, UTC),
        worker_id=event.worker_id,
        role=event.role,
        data=event.fact.to_data(),
    )
