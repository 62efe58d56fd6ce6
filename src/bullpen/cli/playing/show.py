"""A recording on a person's terminal: played, paused, sent to and fro by keys."""

import asyncio
import os
import sys
from datetime import UTC, datetime

from ... import clock
from ...client import Event as Shown
from ...domain.events import Event
from ...log.replay import NANOSECONDS_PER_SECOND, PlaybackPace, ReplayPlayer
from ...log.timeline import find_markers
from ...log.tracks import ChatMoment, Moment
from ..event_line import describe
from ..terminal.filter import OutputFilter
from ..terminal.plain import PlainTextConverter
from ..terminal.tty import Tty
from ..text import is_colourful
from .countdown import PausableTimer
from .keys import PlayerKey, keys_in

MARKED = ("user_prompt", "permission", "question", "error", "worker_failed", "turn_end")
JUMP = 5 * NANOSECONDS_PER_SECOND
MILLISECOND = 1_000_000
SPEEDS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
_CLEAR = b"\x1b[0m\x1b[H\x1b[2J\x1b[3J"


class TerminalPlayer:
    """`worker_id`: only that terminal, as it looked; else everything as lines."""

    def __init__(self, player: ReplayPlayer, pace: PlaybackPace, worker_id: str | None) -> None:
        self._player = player
        self._pace = pace
        self._worker_id = worker_id
        self._filter = OutputFilter()
        self._plain: dict[tuple[str, int], PlainTextConverter] = {}
        self._typed: asyncio.Queue[PlayerKey] = asyncio.Queue()
        self._countdown = PausableTimer()
        self._now = player.next_time or player.end_time  # on the clock of the recording

    async def run(self) -> None:
        if not (os.isatty(sys.stdin.fileno()) and os.isatty(sys.stdout.fileno())):
            async for moment in self._player.play(self._pace):
                self._write(self._draw(moment))
            return
        tty = Tty("print it with: bullpen logs")
        with tty.raw(), tty.listening(self._hear, lambda: None):
            await self._play()
        self._write(self._filter.restore() + b"\n")

    def _hear(self, data: bytes) -> None:
        for key in keys_in(data):
            self._typed.put_nowait(key)

    async def _play(self) -> None:
        """One moment after the other, each due a while after the one before, unless a key comes first."""
        self._countdown.begin(0)
        while True:
            ahead = self._player.next_time is not None  # at the end one can still go back
            key = await self._key(self._countdown.at if ahead else None)
            if key is PlayerKey.QUIT:
                return
            if key is None:
                self._next()
            else:
                self._obey(key)

    async def _key(self, until: float | None) -> PlayerKey | None:
        """The next key; None when the time has come before one."""
        if until is not None and until <= clock.monotonic() and self._typed.empty():
            await asyncio.sleep(0)
            return None
        try:
            async with asyncio.timeout(None if until is None else max(0, until - clock.monotonic())):
                return await self._typed.get()
        except TimeoutError:
            return None

    def _obey(self, key: PlayerKey) -> None:
        match key:
            case PlayerKey.PAUSE:
                self._countdown.pause_or_go_on()
            case PlayerKey.STEP:
                self._next()
                return
            case PlayerKey.FASTER | PlayerKey.SLOWER:
                self._change_speed(1 if key is PlayerKey.FASTER else -1)
            case PlayerKey.FORWARD | PlayerKey.BACK:
                self._jump(JUMP if key is PlayerKey.FORWARD else -JUMP)
            case PlayerKey.START:
                self._go_to(self._player.start_time)
            case PlayerKey.NEXT_MARK:
                self._to_next_mark()
        self._tell()

    def _next(self) -> None:
        moment = self._player.next()
        if moment is not None:
            self._write(self._draw(moment))
            self._now = moment.time
            self._countdown.add(self._ahead())

    def _ahead(self) -> float:
        """Seconds from here to the next moment."""
        due = self._player.next_time
        return 0.0 if due is None else self._pace.seconds(self._now, due)

    def _change_speed(self, step: int) -> None:
        nearest = min(SPEEDS, key=lambda speed: abs(speed - self._pace.speed))
        place = min(max(SPEEDS.index(nearest) + step, 0), len(SPEEDS) - 1)
        self._countdown.stretch(self._pace.speed / SPEEDS[place])
        self._pace.speed = SPEEDS[place]

    def _jump(self, distance: int) -> None:
        self._go_to(min(max(self._now + distance, self._player.start_time), self._player.end_time))

    def _to_next_mark(self) -> None:
        """Up to the mark and past it, so that the next one is another."""
        events = self._player.recorded.events
        for place in range(events.index_of_seq(self._player.seq + 1), len(events)):
            if events.type(place) in MARKED and find_markers([events.event(place)]):
                self._go_to(events.times[place] * MILLISECOND)
                self._player.seek_seq(events.seqs[place])
                self._next()
                return

    def _go_to(self, time: int) -> None:
        """A terminal alone is drawn anew up to there; of lines only those ahead are shown."""
        self._player.seek_time(time)
        self._now = time
        self._countdown.begin(self._ahead())
        if self._worker_id is None:
            return
        self._write(self._filter.restore() + _CLEAR)
        for data in self._player.output_before(self._worker_id):
            self._write(self._filter.feed(data))

    def _tell(self) -> None:
        """Where it stands: as a line among lines; a terminal alone has only its title for that."""
        begins = self._player.start_time
        place = f"{_span(self._now - begins)} of {_span(self._player.end_time - begins)}"
        text = f"{place}, x{self._pace.speed:g}{', paused' if self._countdown.paused else ''}"
        line = f"\x1b]2;{text}\x07" if self._worker_id else f"-- {text} --\r\n"
        self._write(line.encode())

    def _draw(self, moment: Moment) -> bytes:
        if isinstance(moment, ChatMoment):
            return b"" if self._worker_id else f"{describe(_shown(moment.event))}\r\n".encode()
        if self._worker_id:
            return self._filter.feed(moment.data) if moment.worker_id == self._worker_id else b""
        plain = self._plain.setdefault((moment.worker_id, moment.run), PlainTextConverter(is_colourful()))
        return plain.feed(moment.data).replace(b"\n", b"\r\n")

    def _write(self, data: bytes) -> None:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()


def _span(nanoseconds: int) -> str:
    minutes, seconds = divmod(nanoseconds // NANOSECONDS_PER_SECOND, 60)
    return f"{minutes}:{seconds:02d}"


def _shown(event: Event) -> Shown:
    return Shown(
        seq=event.seq,
        type=event.type,
        timestamp=datetime.fromtimestamp(event.timestamp / 1000, UTC),
        worker_id=event.worker_id,
        role=event.role,
        data=event.fact.to_data(),
    )
