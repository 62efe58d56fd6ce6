"""Which streams have grown, and when the server is told: two notices at a time, and not too many."""

from __future__ import annotations

from time import monotonic

from .frames import IN_FLIGHT, Tag, frame
from .stream import UNHEEDED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from .loop import EventLoop
    from .stream import OutputStream

# A notice wakes the server and its answer wakes us: one each read would halve the throughput.
_SPELL = 0.004  # seconds
_SCREEN_SPELL = 0.016  # for floods and crowds: no screen shows more often what came
_PIPE_SPELL = 0.007  # what is said on a pipe is read by the line and stored: each notice costs a commit
_BEHIND = 0.001  # seconds after an echo until the others are told of: it is on its way to a screen


class GrowthNotices:
    """Told at once after a silence, and of a stream that has had input; of all the others once a spell.

    Who has had input is told of alone: what comes with an echo would keep the server from passing it on.
    """

    def __init__(self, loop: EventLoop) -> None:
        self.grown: set[OutputStream] = set()  # since the server was told
        self._loop = loop
        self._unseen = 0  # notices the server has not answered
        self._last = float("-inf")  # when the server was told
        self._held_back = 0  # how many of `grown` can wait for the end of the spell

    def seen(self) -> None:
        """The server has seen all of them, or is a new one."""
        self._unseen = 0

    def expect(self, streams: Iterable[OutputStream]) -> None:
        """Somebody waits for what they say next."""
        for stream in streams:
            stream.heeded_from = stream.spool.end

    def drop(self, streams: Iterable[OutputStream]) -> None:
        """An exit says it all."""
        self.grown.difference_update(streams)

    def next(self) -> bytes:
        """The notice to send now, or nothing; asked after every turn."""
        if self._unseen >= IN_FLIGHT or not self.grown:
            return b""
        if answers := [stream for stream in self.grown if stream.spool.end > stream.heeded_from]:
            return self._tell_answers(answers)
        if len(self.grown) <= self._held_back:
            return b""
        now, spell = monotonic(), self._spell()
        if (wait := self._wait(now - self._last, spell)) > 0:
            self._hold_back(wait)
            return b""
        self._last = now
        self._loop.nap = spell
        self._held_back = 0
        self._unseen += 1
        notice = _notice(self.grown)
        self.grown.clear()
        return notice

    def _wait(self, silence: float, spell: float) -> float:
        """Seconds until the others are told of: the rest of the spell, and for an echo half as long again."""
        if silence < spell:
            return spell - silence
        return self._loop.until_echo if silence < 1.5 * spell else 0.0

    def _tell_answers(self, answers: list[OutputStream]) -> bytes:
        for stream in answers:
            stream.heeded_from = UNHEEDED
        self.grown.difference_update(answers)
        if self.grown and not self._held_back:
            self._hold_back(_BEHIND)
        self._unseen += 1
        return _notice(answers)

    def _spell(self) -> float:
        kinds = {stream.on_terminal for stream in self.grown}
        if True not in kinds:
            return _PIPE_SPELL
        return _SCREEN_SPELL if self._loop.hot or (self._loop.crowded and False not in kinds) else _SPELL

    def _hold_back(self, delay: float) -> None:
        self._loop.later(delay, self._let_go)
        self._held_back = len(self.grown)

    def _let_go(self) -> None:
        self._held_back = 0


def _notice(streams: Iterable[OutputStream]) -> bytes:
    """How far they have grown, with what they said where that is short: JSON made by hand, as a key waits."""
    ends, sizes, body = "", "", b""
    for stream in streams:
        said = stream.take_untold()
        ends += f",{stream.label}{stream.spool.end}]"
        sizes += f",{len(said)}"
        body += said
    given = f',"sizes":[{sizes[1:]}]' if body else ""
    return frame(Tag.NOTICE, f'{{"ends":[{ends[1:]}]{given}}}', body)
