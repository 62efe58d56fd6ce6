"""Provide the client method for the time line of a session: what a replay needs to show any moment."""

from urllib.parse import quote

from .rest import RestClient, RestRequest
from .shapes import ServerShape


class TimelineMarker(ServerShape, frozen=True, kw_only=True):
    """An event that a replay can go to: a `prompt`, `tool`, `permission`, `question` or `error`."""

    seq: int
    time: int
    kind: str
    label: str
    worker_id: str | None = None


class TerminalRunTimeline(ServerShape, frozen=True, kw_only=True):
    """One run of a terminal: `points` are times and offsets, `sizes` are times, columns and rows."""

    worker_id: str
    run: int
    start: int
    end: int
    points: list[tuple[int, int]]
    sizes: list[tuple[int, int, int]]


class TerminalPlace(ServerShape, frozen=True, kw_only=True):
    """The offset of one run of a terminal at a moment."""

    worker_id: str
    run: int
    offset: int


class TimelineMoment(ServerShape, frozen=True, kw_only=True):
    """The position of each log of a session at a moment."""

    seq: int
    terminals: list[TerminalPlace]


class Timeline(ServerShape, frozen=True, kw_only=True):
    """The time line of a session, or one moment of it. Times are milliseconds since the epoch."""

    begins: int
    ends: int
    head: int
    markers: list[TimelineMarker]
    truncated: bool = False
    terminals: list[TerminalRunTimeline]
    moment: TimelineMoment | None = None


class TimelineCalls:
    """The method of `Client` that reads the time line."""

    _rest: RestClient

    async def timeline(self, session_id: str, *, at: int | None = None) -> Timeline:
        """Return the time line of a session; with `at`, the position of each log at this time."""
        query = {} if at is None else {"at": str(at)}
        path = f"/api/sessions/{quote(session_id, safe='')}/timeline"
        return await self._rest.call(Timeline, RestRequest("GET", path, query=query))
