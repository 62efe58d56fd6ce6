"""The timeline of a session for a scrubber: marked events, and sampled offsets of terminal output by time."""

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import Struct

from ..domain.conversation import Permission, Question, ToolCall, TurnEnd, UserPrompt
from ..domain.events import Error, Event, WorkerFailed
from .recording import Recording

TYPES = tuple(
    fact.type for fact in (UserPrompt, ToolCall, Permission, Question, Error, WorkerFailed, TurnEnd)
)
MAX_POINTS = 1000  # of a terminal; no screen can show more
MAX_HELD_POINTS = 64 * MAX_POINTS  # in memory, until MAX_POINTS of them are chosen
MAX_LABEL_LENGTH = 120


class TimelineMarker(Struct, frozen=True, rename="camel"):
    """An event that the timeline marks."""

    seq: int
    time: int  # milliseconds, like all times here
    kind: str
    label: str
    worker_id: str | None


class TerminalTimeline(Struct, frozen=True, kw_only=True, rename="camel"):
    """One run of a terminal: the offsets of its output, and `points` of (time, offset) between them."""

    worker_id: str
    run: int
    start: int
    end: int
    points: list[tuple[int, int]]
    sizes: list[tuple[int, int, int]]  # offset, columns, rows; valid from that offset on


def find_markers(events: Iterable[Event]) -> list[TimelineMarker]:
    """Return a timeline marker for each event that the timeline shows."""
    return [
        TimelineMarker(event.seq, event.timestamp, *found, event.worker_id)
        for event in events
        if (found := _kind_and_label(event))
    ]


def terminal_timeline(worker_id: str, run: int, recording: Recording) -> TerminalTimeline:
    """Return the timeline of one run of a terminal: sampled offsets by time, and window sizes."""
    points = _SampledPoints()
    sizes: deque[tuple[int, int, int]] = deque(maxlen=MAX_POINTS)
    for offset, time, cols, rows in recording.index():
        points.add((time // 1_000_000, offset))
        if cols and (not sizes or sizes[-1][1:] != (cols, rows)):
            sizes.append((offset, cols, rows))
    return TerminalTimeline(
        worker_id=worker_id,
        run=run,
        start=recording.start,
        end=recording.end,
        points=_choose_evenly(points.sample()),
        sizes=list(sizes),
    )


class _SampledPoints:
    """An evenly spaced sample of points: when there are too many, every second one is dropped."""

    def __init__(self) -> None:
        self._points: list[tuple[int, int]] = []
        self._last: list[tuple[int, int]] = []  # the newest point, unless the sample has it
        self._step = 1
        self._count = 0

    def add(self, point: tuple[int, int]) -> None:
        """Add a point to the sample; thin out the sample by half when it is too large."""
        if self._count % self._step:
            self._last = [point]
        else:
            self._points.append(point)
            self._last = []
        self._count += 1
        if len(self._points) > MAX_HELD_POINTS:
            if len(self._points) % 2 == 0:
                self._last = [point]
            self._points = self._points[::2]
            self._step *= 2

    def sample(self) -> list[tuple[int, int]]:
        """Return the sampled points and the newest one."""
        return self._points + self._last


def _choose_evenly(points: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return at most MAX_POINTS evenly spaced points, including the first and the last."""
    if len(points) <= MAX_POINTS:
        return list(points)
    step = (len(points) - 1) / (MAX_POINTS - 1)
    return [points[round(number * step)] for number in range(MAX_POINTS)]


def _kind_and_label(event: Event) -> tuple[str, str] | None:  # noqa: PLR0911 (a table)
    """Return kind and label of the marker for an event; None if the timeline does not mark the event."""
    match event.fact:
        case UserPrompt() as fact:
            return "prompt", _label(fact.text)
        case ToolCall() as fact:
            return "tool", _label(fact.call.get("title") or fact.call.get("kind"))
        case Permission() as fact if fact.status == "pending":
            return "permission", _label(fact.tool_call.get("title"))
        case Question() as fact if fact.status == "pending":
            return "question", _label(fact.message)
        case Error() as fact:
            return "error", _label(fact.message)
        case WorkerFailed() as fact:
            return "error", _label(fact.error)
        case TurnEnd() as fact if fact.error:
            return "error", _label(fact.error)
    return None


def _label(text: Any) -> str:
    """Return the text of a timeline marker: one short line."""
    line = " ".join(str(text or "").split())
    return line if len(line) <= MAX_LABEL_LENGTH else line[: MAX_LABEL_LENGTH - 1] + "…"
