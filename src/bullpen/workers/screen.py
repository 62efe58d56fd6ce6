"""The emulated screen of one run of one terminal, made from its recording and never more than a cache of it.

Everything here blocks: it belongs in a thread, and only one thread at a time may use one screen, since
feeding and formatting a Ghostty terminal at once crashes it.
"""

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import NamedTuple, Protocol

from .ghostty import EmulatedTerminal, GhosttyError
from .screen_emulation import ScreenEmulation, ScreenHistory
from .screen_plain import PlainRun, forgets, is_plain, lines_to_forget
from .screen_queries import LOOK_BACK, may_ask
from .screen_replies import QueryReplies, QueryReply
from .screen_saved import SavedPosition, SavedScreens

__all__ = [
    "LOOK_BACK",
    "OutputSource",
    "QueryReply",
    "SavedPosition",
    "Screen",
    "ScreenHistory",
    "ScreenView",
    "may_ask",
]

BLOCK = 256 << 10  # bytes fed at once
SKIP_FROM = 2 << 20  # bytes still to be fed that are worth a look for plain text
RUN_MAX_BYTES = 4 << 20  # of plain text held back, when its lines are long
SAVE_EVERY = 4 << 20  # bytes
BRACKETED_PASTE = 2004  # the number of the mode


class OutputSource(Protocol):
    """The recorded bytes of a run, by absolute offset."""

    @property
    def start(self) -> int: ...

    @property
    def end(self) -> int: ...

    def read(self, offset: int, limit: int) -> bytes:
        """Empty at the end; raises LookupError when `offset` lies before `start`."""

    def sizes(self, after: int) -> Iterable[tuple[int, int, int]]:
        """Every (offset, cols, rows) recorded at or after an offset, in order; valid from that byte on."""


class ScreenView(NamedTuple):
    """What is shown, and whether the program knows a paste when it gets one."""

    text: str
    pastes: bool


Watch = Callable[[], AbstractContextManager[object]]


class Screen:
    """Comes into memory with its first use, from the newest saved screen or from the recording."""

    def __init__(
        self,
        source: OutputSource,
        directory: Path,
        cols: int,
        rows: int,
        *,
        answered: int = 0,
        watch: Watch = nullcontext,
    ) -> None:
        """`cols` and `rows`: what the run began with. `answered`: the number of the last reply its program
        was given. `watch`: entered while the library is in use."""
        self._source = source
        self._saved = SavedScreens(directory)
        self._first_size = (cols, rows)
        self._answered = answered
        self._replies = QueryReplies(answered)
        self._watch = watch
        self._lane = threading.Lock()
        self._emulation: ScreenEmulation | None = None
        self._saved_at = 0

    def advance(self, to: int, answer_from: int = 0) -> list[QueryReply]:
        """Feeds the recording up to an offset; returns every reply that was not returned before.

        Those to questions before `answer_from` come without bytes: they would be typed too late.
        """
        with self._in_use() as emulation:
            if emulation.place.offset < answer_from < to:
                self._lead(emulation, answer_from)
            self._lead(emulation, to)
            return self._replies.take(emulation.place.replies, answer_from)

    def history(self, to: int = 0) -> ScreenHistory:
        """What a viewer's fresh terminal must be fed; nothing in it asks the viewer anything.

        Replies to what was asked up to `to` wait for the next `advance`.
        """
        with self._in_use() as emulation:
            self._lead(emulation, to)
            return emulation.history()

    def seen(self, to: int) -> ScreenView:
        """The screen at an offset, as a person sees it; replies wait as above."""
        with self._in_use() as emulation:
            self._lead(emulation, to)
            terminal = emulation.terminal
            return ScreenView(terminal.text(), terminal.mode(BRACKETED_PASTE))

    @property
    def loaded(self) -> bool:
        """Whether it takes memory."""
        return self._emulation is not None

    def rest(self) -> None:
        """Saves the screen and gives its memory back until it is used again."""
        if self._emulation is None:
            return
        with self._in_use() as emulation:
            self._save(emulation)
            emulation.terminal.close()
            self._emulation = None

    @property
    def place(self) -> SavedPosition:
        """Where the screen is, or would begin; does not load the library."""
        if self._emulation is not None:
            return self._emulation.place
        newest = next(self._saved.newest_first(self._source.end), None)
        place = newest[0] if newest else SavedPosition(0)
        if place.offset >= self._source.start:
            return place
        return SavedPosition(self._source.start, max(place.replies, self._answered))

    @contextmanager
    def _in_use(self) -> Iterator[ScreenEmulation]:
        if not self._lane.acquire(blocking=False):
            raise AssertionError("two threads use one screen at once")
        try:
            with self._watch():
                if self._emulation is None:
                    self._emulation = self._load()
                if self._emulation.place.offset < self._source.start:
                    self._cross_hole(self._emulation)
                yield self._emulation
        finally:
            self._lane.release()

    # Coming into memory

    def _load(self) -> ScreenEmulation:
        for place, encoded in self._saved.newest_first(self._source.end):
            with suppress(GhosttyError):  # written by another version, perhaps
                emulation = ScreenEmulation(EmulatedTerminal.decode(encoded), place)
                self._saved_at = place.offset
                return emulation
        return ScreenEmulation.blank(*self._first_size)

    # Going on

    def _lead(self, emulation: ScreenEmulation, to: int) -> None:
        for offset, cols, rows in self._sizes_to_come(emulation, to):
            self._feed(emulation, offset)
            self._replies.add(emulation.place.offset, emulation.resize(cols, rows))
        self._feed(emulation, to)
        if emulation.place.offset - self._saved_at >= SAVE_EVERY:
            self._save(emulation)

    def _sizes_to_come(self, emulation: ScreenEmulation, to: int) -> Iterator[tuple[int, int, int]]:
        at, applied = emulation.place.offset, emulation.place.resizes
        for offset, cols, rows in self._source.sizes(at):
            if offset > to:
                return
            if offset == at and applied:
                applied -= 1
            elif offset >= emulation.place.offset:  # not inside of a hole that was crossed meanwhile
                yield offset, cols, rows

    def _feed(self, emulation: ScreenEmulation, to: int) -> None:
        while (offset := emulation.place.offset) < to:
            try:
                if to - offset >= SKIP_FROM and forgets(emulation.terminal):
                    self._feed_plain(emulation, to)
                offset = emulation.place.offset
                block = self._source.read(offset, min(BLOCK, to - offset))
            except LookupError:
                if not self._cross_hole(emulation):
                    return
                continue
            if not block:
                return
            self._replies.add(offset, emulation.feed(block, len(block)))

    def _feed_plain(self, emulation: ScreenEmulation, to: int) -> None:
        """Feeds a stretch of plain text, or no more than its end when that leaves the same screen."""
        run, begin = PlainRun(lines_to_forget(emulation.terminal)), emulation.place.offset
        offset = begin
        while offset < to and run.size < RUN_MAX_BYTES:
            block = self._source.read(offset, min(BLOCK, to - offset))
            if not block or not is_plain(block):
                break
            run.add(block)
            offset += len(block)
        emulation.feed(run.text(), offset - begin)

    def _cross_hole(self, emulation: ScreenEmulation) -> bool:
        """The recording no longer has what comes next: goes on with the oldest that it has, if it has any."""
        if self._source.start <= emulation.place.offset:
            return False
        start, size = self._source.start, (emulation.terminal.cols, emulation.terminal.rows)
        for offset, cols, rows in self._source.sizes(emulation.place.offset):
            if offset >= start:
                break
            size = (cols, rows)
        emulation.leap(start, *size, self._answered)
        return True

    def _save(self, emulation: ScreenEmulation) -> bool:
        # Without room on the disk or inside of an endless sequence there is simply no newer saved screen.
        with suppress(GhosttyError, OSError):
            self._saved.write(emulation.place, emulation.terminal.encode())
            self._saved_at = emulation.place.offset
            return True
        return False
