"""What a scrubber shows of a session: moments worth a mark, and how far its terminals were at any time."""

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
MOST_POINTS = 1000  # of a terminal; more are not seen on any screen
KEPT_POINTS = 64 * MOST_POINTS  # in memory, until MOST_POINTS of them are chosen
LONGEST_LABEL = 120


class TimelineMarker(Struct, frozen=True, rename="camel"):
    seq: int
    time: int  # milliseconds, as all of these
    kind: str
    label: str
    worker_id: str | None


class TerminalLine(Struct, frozen=True, kw_only=True, rename="camel"):
    """One run of a terminal: where its bytes begin and end, and `points` of (time, offset) between."""

    worker_id: str
    run: int
    start: int
    end: int
    points: list[tuple[int, int]]
    sizes: list[tuple[int, int, int]]  # offset, columns, rows: what holds from there on


def markers(events: Iterable[Event]) -> list[TimelineMarker]:
    return [
        TimelineMarker(event.seq, event.timestamp, *found, event.worker_id)
        for event in events
        if (found := _marked(event))
    ]


def terminal_line(worker_id: str, run: int, recording: Recording) -> TerminalLine:
    points = _SampledPoints()
    sizes: deque[tuple[int, int, int]] = deque(maxlen=MOST_POINTS)
    for offset, time, cols, rows in recording.index():
        points.add((time // 1_000_000, offset))
        if cols and (not sizes or sizes[-1][1:] != (cols, rows)):
            sizes.append((offset, cols, rows))
    return TerminalLine(
        worker_id=worker_id,
        run=run,
        start=recording.start,
        end=recording.end,
        points=_some(points.kept()),
        sizes=list(sizes),
    )


class _SampledPoints:
    """An even choice of any number of points: every second one is dropped whenever there are too many."""

    def __init__(self) -> None:
        self._points: list[tuple[int, int]] = []
        self._last: list[tuple[int, int]] = []  # if it is not one of them
        self._step = 1
        self._count = 0

    def add(self, point: tuple[int, int]) -> None:
        if self._count % self._step:
            self._last = [point]
        else:
            self._points.append(point)
            self._last = []
        self._count += 1
        if len(self._points) > KEPT_POINTS:
            if len(self._points) % 2 == 0:
                self._last = [point]
            self._points = self._points[::2]
            self._step *= 2

    def kept(self) -> list[tuple[int, int]]:
        return self._points + self._last


def _some(points: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Evenly chosen, with the first and the last."""
    if len(points) <= MOST_POINTS:
        return list(points)
    step = (len(points) - 1) / (MOST_POINTS - 1)
    return [points[round(number * step)] for number in range(MOST_POINTS)]


def _marked(event: Event) -> tuple[str, str] | None:  # noqa: PLR0911 (a table)
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
    line = " ".join(str(text or "").split())
    return line if len(line) <= LONGEST_LABEL else line[: LONGEST_LABEL - 1] + "…"
