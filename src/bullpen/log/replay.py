"""The player: everything that happened in a session once more, chat and terminals on one clock.

A place in it is one number for each track. To seek is to look each of them up in an index, so a moment of a
day's work is as near as any other.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path

from .. import clock
from ..domain.errors import NotFound
from ..domain.events import Event
from .recorded import RecordingDirectory
from .tracks import ChatMoment, ChatTrack, Moment, OutputMoment, TerminalTrack, Track

NANOSECONDS = 1_000_000_000
MOST_BEFORE = 1 << 20  # bytes that are enough to draw a screen


class PlaybackPace:
    """How long the time of a recording takes here: at a speed, with silence cut to `idle` seconds."""

    def __init__(self, speed: float = 1.0, idle: float | None = None) -> None:
        self.speed = speed
        self.idle = idle

    def seconds(self, before: int, after: int) -> float:
        """The wait between two moments, in seconds of whoever watches."""
        gap = max(0, after - before) / NANOSECONDS
        return (gap if self.idle is None else min(gap, self.idle)) / self.speed


class ReplayPlayer:
    """Stands before a moment: `peek` looks at it, `next` goes on, `seek` goes anywhere."""

    def __init__(self, recorded: RecordingDirectory) -> None:
        self.recorded = recorded
        self._chat = ChatTrack(recorded.events)
        self.terminals = {
            (worker_id, run): TerminalTrack(path, worker_id, run)
            for (worker_id, run), path in recorded.spools().items()
        }
        self._tracks: Sequence[Track] = (self._chat, *self.terminals.values())
        self._places = [0] * len(self._tracks)

    @classmethod
    def open(cls, directory: Path) -> "ReplayPlayer":
        return cls(RecordingDirectory(directory))

    def close(self) -> None:
        self.recorded.close()
        for track in self.terminals.values():
            track.close()

    # Where it stands

    @property
    def position(self) -> int:
        """How many moments lie behind."""
        return sum(self._places)

    def __len__(self) -> int:
        return sum(map(len, self._tracks))

    @property
    def begins(self) -> int:
        """The time of the first moment, in nanoseconds; 0 when there is none."""
        return min((track.time(0) for track in self._tracks if len(track)), default=0)

    @property
    def ends(self) -> int:
        return max((track.time(len(track) - 1) for track in self._tracks if len(track)), default=0)

    @property
    def seq(self) -> int:
        """The number of the last event that lies behind; 0 before the first."""
        place = self._places[0]
        return self.recorded.events.seqs[place - 1] if place else 0

    @property
    def due(self) -> int | None:
        """The time of the next moment; None at the end."""
        track = self._nearest()
        return None if track is None else self._tracks[track].time(self._places[track])

    # Going on

    def peek(self) -> Moment | None:
        """The next moment; None at the end. The player stays where it is."""
        track = self._nearest()
        return None if track is None else self._tracks[track].read(self._places[track])

    def next(self) -> Moment | None:
        """The next moment, which then lies behind; None at the end."""
        track = self._nearest()
        if track is None:
            return None
        moment = self._tracks[track].read(self._places[track])
        self._places[track] += 1
        return moment

    def __iter__(self) -> Iterator[Moment]:
        while (moment := self.next()) is not None:
            yield moment

    async def play(self, pace: PlaybackPace) -> AsyncIterator[Moment]:
        """Every moment at its time. Deadlines are added up: to be late once is not to be late for ever."""
        before = self.due
        deadline = clock.monotonic()
        while (due := self.due) is not None:
            deadline += pace.seconds(due if before is None else before, due)
            if (wait := deadline - clock.monotonic()) > 0:
                await asyncio.sleep(wait)
            moment = self.next()
            assert moment is not None
            before = due
            yield moment

    # Going elsewhere

    def reset(self) -> None:
        """Back to the beginning."""
        self._places = [0] * len(self._tracks)

    def seek_seq(self, seq: int) -> None:
        """So that this event is the next, or the first after it that is there; NotFound behind the last."""
        place = self.recorded.events.place_of(seq)
        if place >= len(self._chat):
            raise NotFound(f"the recording ends before event {seq}")
        time = self._chat.time(place)
        self._places = [place, *(track.place_at(time) for track in self._tracks[1:])]

    def seek_time(self, time: int) -> None:
        """So that everything before this time lies behind, and nothing else."""
        self._places = [track.place_at(time) for track in self._tracks]

    def offsets(self) -> dict[tuple[str, int], int]:
        """How far each run of a terminal had come: what it had said lies before this byte."""
        places = zip(self.terminals.items(), self._places[1:], strict=True)
        return {key: track.offset_at(place) for (key, track), place in places}

    # Looking

    def output_before(self, worker_id: str) -> Iterator[bytes]:
        """What the latest run of a terminal had said up to here, in pieces; its last MOST_BEFORE bytes."""
        keys = list(self.terminals)
        begun = [
            number for number, (id, _) in enumerate(keys) if id == worker_id and self._places[number + 1] > 0
        ]
        if not begun:
            return
        track, end = self.terminals[keys[begun[-1]]], self._places[begun[-1] + 1]
        for place in range(track.place_of(track.offset_at(end) - MOST_BEFORE), end):
            moment = track.read(place)
            if isinstance(moment, OutputMoment):
                yield moment.data

    def of_type(self, name: str) -> Iterator[Event]:
        """All events of a type, wherever the player stands."""
        events = self.recorded.events
        return (events.event(place) for place in events.of_type(name))

    def events(self) -> Iterator[Event]:
        """The events that lie ahead; the player goes past them."""
        return (moment.event for moment in self if isinstance(moment, ChatMoment))

    def _nearest(self) -> int | None:
        """The track that comes next; of several at the same time the chat, then the terminals in order."""
        ahead = [
            (track.time(place), number)
            for number, (track, place) in enumerate(zip(self._tracks, self._places, strict=True))
            if place < len(track)
        ]
        return min(ahead)[1] if ahead else None
