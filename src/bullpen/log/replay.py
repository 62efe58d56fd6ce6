"""Replay a recorded session: its events and the output of its terminals, on one clock.

A position is one number for each track. Seeking looks each of them up in an index, so every time is reached
equally fast.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path

from .. import clock
from ..domain.errors import NotFound
from ..domain.events import Event
from .recording_directory import RecordingDirectory
from .tracks import ChatMoment, ChatTrack, Moment, OutputMoment, TerminalTrack, Track

NANOSECONDS_PER_SECOND = 1_000_000_000
MAX_HISTORY_BYTES = 1 << 20  # enough output to draw a screen


class PlaybackPace:
    """The timing of playback: a speed factor, and a limit in seconds for silences (`idle`)."""

    def __init__(self, speed: float = 1.0, idle: float | None = None) -> None:
        self.speed = speed
        self.idle = idle

    def seconds(self, before: int, after: int) -> float:
        """Return the seconds to wait between moments at two times in nanoseconds."""
        gap = max(0, after - before) / NANOSECONDS_PER_SECOND
        return (gap if self.idle is None else min(gap, self.idle)) / self.speed


class ReplayPlayer:
    """Plays a recorded session moment by moment.

    The player stands before a moment: `peek` returns it, `next` returns it and moves on, `seek_…` moves
    anywhere.
    """

    def __init__(self, recorded: RecordingDirectory) -> None:
        self.recorded = recorded
        self._chat = ChatTrack(recorded.events)
        self.terminals = {
            (worker_id, run): TerminalTrack(path, worker_id, run)
            for (worker_id, run), path in recorded.spools().items()
        }
        self._tracks: Sequence[Track] = (self._chat, *self.terminals.values())
        self._indexes = [0] * len(self._tracks)

    @classmethod
    def open(cls, directory: Path) -> "ReplayPlayer":
        """Open the recording in a directory."""
        return cls(RecordingDirectory(directory))

    def close(self) -> None:
        """Close the files of the recording."""
        self.recorded.close()
        for track in self.terminals.values():
            track.close()

    # Position

    @property
    def position(self) -> int:
        """The number of moments of the replay already played."""
        return sum(self._indexes)

    def __len__(self) -> int:
        return sum(map(len, self._tracks))

    @property
    def start_time(self) -> int:
        """The time of the first moment in nanoseconds; 0 if there is none."""
        return min((track.time(0) for track in self._tracks if len(track)), default=0)

    @property
    def end_time(self) -> int:
        """The time of the last moment in nanoseconds; 0 if there is none."""
        return max((track.time(len(track) - 1) for track in self._tracks if len(track)), default=0)

    @property
    def seq(self) -> int:
        """The number of the last event played; 0 before the first."""
        index = self._indexes[0]
        return self.recorded.events.seqs[index - 1] if index else 0

    @property
    def next_time(self) -> int | None:
        """The time of the next moment in nanoseconds; None at the end."""
        track = self._next_track()
        return None if track is None else self._tracks[track].time(self._indexes[track])

    # Playing

    def peek(self) -> Moment | None:
        """Return the next moment without moving; None at the end."""
        track = self._next_track()
        return None if track is None else self._tracks[track].read(self._indexes[track])

    def next(self) -> Moment | None:
        """Return the next moment and move past it; None at the end."""
        track = self._next_track()
        if track is None:
            return None
        moment = self._tracks[track].read(self._indexes[track])
        self._indexes[track] += 1
        return moment

    def __iter__(self) -> Iterator[Moment]:
        while (moment := self.next()) is not None:
            yield moment

    async def play(self, pace: PlaybackPace) -> AsyncIterator[Moment]:
        """Yield each moment at its time.

        Deadlines are absolute, so that a late moment does not delay the rest.
        """
        before = self.next_time
        deadline = clock.monotonic()
        while (time := self.next_time) is not None:
            deadline += pace.seconds(time if before is None else before, time)
            if (wait := deadline - clock.monotonic()) > 0:
                await asyncio.sleep(wait)
            moment = self.next()
            assert moment is not None
            before = time
            yield moment

    # Seeking

    def reset(self) -> None:
        """Move the replay to the beginning."""
        self._indexes = [0] * len(self._tracks)

    def seek_seq(self, seq: int) -> None:
        """Move the replay before this event, or the first one after it that exists.

        Raise NotFound beyond the last event.
        """
        index = self.recorded.events.index_of_seq(seq)
        if index >= len(self._chat):
            raise NotFound(f"the recording ends before event {seq}")
        time = self._chat.time(index)
        self._indexes = [index, *(track.index_at(time) for track in self._tracks[1:])]

    def seek_time(self, time: int) -> None:
        """Move the replay before the first moment at or after a time in nanoseconds."""
        self._indexes = [track.index_at(time) for track in self._tracks]

    def offsets(self) -> dict[tuple[str, int], int]:
        """Return, for each run of a terminal, the offset up to which its output was played."""
        tracks = zip(self.terminals.items(), self._indexes[1:], strict=True)
        return {key: track.offset_at(index) for (key, track), index in tracks}

    # Reading without moving

    def output_before(self, worker_id: str) -> Iterator[bytes]:
        """Yield the output of a terminal's latest run up to here, at most MAX_HISTORY_BYTES."""
        keys = list(self.terminals)
        started = [
            number for number, (id, _) in enumerate(keys) if id == worker_id and self._indexes[number + 1] > 0
        ]
        if not started:
            return
        track, end = self.terminals[keys[started[-1]]], self._indexes[started[-1] + 1]
        for index in range(track.index_of(track.offset_at(end) - MAX_HISTORY_BYTES), end):
            moment = track.read(index)
            if isinstance(moment, OutputMoment):
                yield moment.data

    def events_of_type(self, name: str) -> Iterator[Event]:
        """Yield all events of a type in the recording, independent of the position."""
        events = self.recorded.events
        return (events.event(index) for index in events.indexes_of_type(name))

    def events(self) -> Iterator[Event]:
        """Yield the events from the present position on, and move past them."""
        return (moment.event for moment in self if isinstance(moment, ChatMoment))

    def _next_track(self) -> int | None:
        """Return which track has the next moment, or None at the end.

        At equal times the chat comes first, then the terminals in order.
        """
        remaining = [
            (track.time(index), number)
            for number, (track, index) in enumerate(zip(self._tracks, self._indexes, strict=True))
            if index < len(track)
        ]
        return min(remaining)[1] if remaining else None
