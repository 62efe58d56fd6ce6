"""Decide when the server is notified of the streams that have grown, so that notices are coalesced.

Each notice wakes the server, and its acknowledgement wakes the keeper: one notice per read would halve the
throughput. At most two notices are unacknowledged.
"""

from __future__ import annotations

from time import monotonic

from .frames import MAX_NOTICES_IN_FLIGHT, Tag, encode_json_header
from .stream import NOT_AWAITED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from .loop import EventLoop
    from .stream import OutputStream

# Seconds between two notices:
_INTERVAL = 0.004
_SCREEN_INTERVAL = 0.016  # of terminals in floods and crowds: no screen is drawn more often
_PIPE_INTERVAL = 0.007  # of pipes, whose output is read by lines and stored: each notice costs a commit
_AFTER_ECHO_SECONDS = 0.001  # from the notice of an echo to that of other streams: the echo is sent on first


class GrowthNotices:
    """Makes a notice at once after a silence and for an answer to input, else once per interval.

    A stream that has answered input has a notice of its own: the server would send the echo on later if it
    had to read other streams too.
    """

    def __init__(self, loop: EventLoop) -> None:
        self.grown: set[OutputStream] = set()  # since the last notice
        self._loop = loop
        self._unacknowledged = 0
        self._last = float("-inf")  # when the last notice was made, those of answers left out
        self._held_back = 0  # how many streams of `grown` wait until the interval ends

    def acknowledged(self) -> None:
        """Allow new notices: the server has read all of them, or is a new server."""
        self._unacknowledged = 0

    def expect_answer(self, streams: Iterable[OutputStream]) -> None:
        """Give the next output of these streams a notice at once: their child has had input."""
        for stream in streams:
            stream.awaited_from = stream.spool.end

    def discard(self, streams: Iterable[OutputStream]) -> None:
        """Make no notice for these streams: the notice of the child's exit has their ends."""
        self.grown.difference_update(streams)

    def next(self) -> bytes:
        """Return the frame of the notice to send now, or nothing. Called after every loop iteration."""
        if self._unacknowledged >= MAX_NOTICES_IN_FLIGHT or not self.grown:
            return b""
        if answers := [stream for stream in self.grown if stream.spool.end > stream.awaited_from]:
            return self._notice_of_answers(answers)
        if len(self.grown) <= self._held_back:
            return b""
        now, interval = monotonic(), self._interval()
        if (wait := self._wait(now - self._last, interval)) > 0:
            self._hold_back(wait)
            return b""
        self._last = now
        self._loop.coalesce_seconds = interval
        self._held_back = 0
        self._unacknowledged += 1
        notice = _notice(self.grown)
        self.grown.clear()
        return notice

    def _wait(self, silence: float, interval: float) -> float:
        """Return the seconds until the next notice: an expected echo may delay it by half an interval."""
        if silence < interval:
            return interval - silence
        return self._loop.until_echo if silence < 1.5 * interval else 0.0

    def _notice_of_answers(self, answers: list[OutputStream]) -> bytes:
        """Return the notice of streams that have answered input; hold the other streams back for a moment."""
        for stream in answers:
            stream.awaited_from = NOT_AWAITED
        self.grown.difference_update(answers)
        if self.grown and not self._held_back:
            self._hold_back(_AFTER_ECHO_SECONDS)
        self._unacknowledged += 1
        return _notice(answers)

    def _interval(self) -> float:
        """Return the interval in force: it depends on the kinds of streams that have grown."""
        kinds = {stream.on_terminal for stream in self.grown}
        if True not in kinds:
            return _PIPE_INTERVAL
        if self._loop.floods or (self._loop.crowded and False not in kinds):
            return _SCREEN_INTERVAL
        return _INTERVAL

    def _hold_back(self, delay: float) -> None:
        """Make no notice of the streams that have grown until the delay has passed."""
        self._loop.call_later(delay, self._end_hold)
        self._held_back = len(self.grown)

    def _end_hold(self) -> None:
        """Allow notices again after they were held back."""
        self._held_back = 0


def _notice(streams: Iterable[OutputStream]) -> bytes:
    """Encode how far the streams have grown, with their new output where it is short.

    The JSON is written by hand: an echo waits for it.
    """
    ends, sizes, body = "", "", b""
    for stream in streams:
        output = stream.take_unsent()
        ends += f",{stream.label}{stream.spool.end}]"
        sizes += f",{len(output)}"
        body += output
    sizes_field = f',"sizes":[{sizes[1:]}]' if body else ""
    return encode_json_header(Tag.NOTICE, f'{{"ends":[{ends[1:]}]{sizes_field}}}', body)
