"""Emulate the screen of one run of a terminal from its recording; the screen is a cache of the recording.

All methods block, so call them in a thread. Only one thread at a time may use a screen: two that use one
Ghostty terminal crash it.
"""

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import NamedTuple, Protocol

from .ghostty import EmulatedTerminal, GhosttyError
from .saved_screens import SavedScreens, ScreenPosition
from .screen_emulation import ScreenEmulation, ScreenHistory
from .screen_plain import PlainRun, forgets_all_rows, is_plain, lines_to_forget
from .screen_queries import LOOK_BACK_BYTES, may_contain_query
from .screen_replies import QueryReplies, QueryReply

__all__ = [
    "LOOK_BACK_BYTES",
    "OutputSource",
    "QueryReply",
    "Screen",
    "ScreenHistory",
    "ScreenPosition",
    "ScreenView",
    "may_contain_query",
]

FEED_BYTES = 256 << 10  # fed at once
PLAIN_SEARCH_BYTES = 2 << 20  # if more is to be fed, plain text is looked for that can be skipped
MAX_PLAIN_BYTES = 4 << 20  # of plain text held at once, if its lines are long
SAVE_BYTES = 4 << 20  # of output from one saved screen to the next
BRACKETED_PASTE_MODE = 2004


class OutputSource(Protocol):
    """The recorded bytes of a run, by absolute offset."""

    @property
    def start(self) -> int: ...

    @property
    def end(self) -> int: ...

    def read(self, offset: int, limit: int) -> bytes:
        """Return bytes from an offset on, none at the end; raise LookupError before `start`."""

    def window_sizes(self, after: int) -> Iterable[tuple[int, int, int]]:
        """Yield each (offset, cols, rows) recorded at or after an offset: the size from that byte on."""


class ScreenView(NamedTuple):
    """The text on a screen, and whether the program has enabled bracketed paste."""

    text: str
    bracketed_paste: bool


Guard = Callable[[], AbstractContextManager[object]]


class Screen:
    """The screen of one run, loaded on first use from the newest saved screen or from the recording."""

    def __init__(
        self,
        source: OutputSource,
        directory: Path,
        cols: int,
        rows: int,
        *,
        answered: int = 0,
        guard: Guard = nullcontext,
    ) -> None:
        """`cols` and `rows`: the size at the start of the run. `answered`: the number of the last reply that
        its program was given. `guard`: a context that is entered while the library is in use."""
        self._source = source
        self._saved = SavedScreens(directory)
        self._first_size = (cols, rows)
        self._answered = answered
        self._replies = QueryReplies(answered)
        self._guard = guard
        self._lock = threading.Lock()
        self._emulation: ScreenEmulation | None = None
        self._saved_at = 0

    def advance(self, to: int, answer_from: int = 0) -> list[QueryReply]:
        """Feed the recording up to an offset, and return each reply that was not returned before.

        Replies to queries before `answer_from` have no bytes: they would be typed too late.
        """
        with self._in_use() as emulation:
            if emulation.position.offset < answer_from < to:
                self._feed_to(emulation, answer_from)
            self._feed_to(emulation, to)
            return self._replies.take(emulation.position.replies, answer_from)

    def history(self, to: int = 0) -> ScreenHistory:
        """Return the bytes that make an empty terminal show this screen; they contain no query.

        Replies to queries up to `to` are returned by the next `advance`.
        """
        with self._in_use() as emulation:
            self._feed_to(emulation, to)
            return emulation.history()

    def view(self, to: int) -> ScreenView:
        """Return the screen at an offset as text; replies are returned by the next `advance`."""
        with self._in_use() as emulation:
            self._feed_to(emulation, to)
            terminal = emulation.terminal
            return ScreenView(terminal.text(), terminal.mode(BRACKETED_PASTE_MODE))

    @property
    def loaded(self) -> bool:
        """Whether the screen is in memory."""
        return self._emulation is not None

    def unload(self) -> None:
        """Save the screen and free its memory until it is used again."""
        if self._emulation is None:
            return
        with self._in_use() as emulation:
            self._save(emulation)
            emulation.terminal.close()
            self._emulation = None

    @property
    def position(self) -> ScreenPosition:
        """The position in the recording that the screen has, or would be loaded with."""
        if self._emulation is not None:
            return self._emulation.position
        newest = next(self._saved.newest_first(self._source.end), None)
        position = newest[0] if newest else ScreenPosition(0)
        if position.offset >= self._source.start:
            return position
        return ScreenPosition(self._source.start, max(position.replies, self._answered))

    @contextmanager
    def _in_use(self) -> Iterator[ScreenEmulation]:
        """Lock, load and guard the screen for the duration of the block."""
        if not self._lock.acquire(blocking=False):
            raise AssertionError("two threads use one screen at once")
        try:
            with self._guard():
                if self._emulation is None:
                    self._emulation = self._load()
                if self._emulation.position.offset < self._source.start:
                    self._skip_gap(self._emulation)
                yield self._emulation
        finally:
            self._lock.release()

    def _load(self) -> ScreenEmulation:
        """Return the newest saved screen, or a blank one."""
        for position, encoded in self._saved.newest_first(self._source.end):
            with suppress(GhosttyError):  # it may be written by another version
                emulation = ScreenEmulation(EmulatedTerminal.decode(encoded), position)
                self._saved_at = position.offset
                return emulation
        return ScreenEmulation.blank(*self._first_size)

    def _feed_to(self, emulation: ScreenEmulation, to: int) -> None:
        """Feed the recording up to an offset, with the resizes on the way; save the screen now and then."""
        for offset, cols, rows in self._sizes_up_to(emulation, to):
            self._feed(emulation, offset)
            self._replies.add(emulation.position.offset, emulation.resize(cols, rows))
        self._feed(emulation, to)
        if emulation.position.offset - self._saved_at >= SAVE_BYTES:
            self._save(emulation)

    def _sizes_up_to(self, emulation: ScreenEmulation, to: int) -> Iterator[tuple[int, int, int]]:
        """Yield the window sizes recorded up to an offset that are not applied to the emulation yet."""
        at, applied = emulation.position.offset, emulation.position.resizes
        for offset, cols, rows in self._source.window_sizes(at):
            if offset > to:
                return
            if offset == at and applied:
                applied -= 1
            elif offset >= emulation.position.offset:  # not inside a gap that was skipped meanwhile
                yield offset, cols, rows

    def _feed(self, emulation: ScreenEmulation, to: int) -> None:
        """Feed the emulator the output up to an offset, and keep its replies; skip bytes that are removed."""
        while (offset := emulation.position.offset) < to:
            try:
                if to - offset >= PLAIN_SEARCH_BYTES and forgets_all_rows(emulation.terminal):
                    self._feed_plain(emulation, to)
                offset = emulation.position.offset
                block = self._source.read(offset, min(FEED_BYTES, to - offset))
            except LookupError:
                if not self._skip_gap(emulation):
                    return
                continue
            if not block:
                return
            self._replies.add(offset, emulation.feed(block, len(block)))

    def _feed_plain(self, emulation: ScreenEmulation, to: int) -> None:
        """Feed a run of plain text, or only its end if that leaves the same screen."""
        run, start = PlainRun(lines_to_forget(emulation.terminal)), emulation.position.offset
        offset = start
        while offset < to and run.size < MAX_PLAIN_BYTES:
            block = self._source.read(offset, min(FEED_BYTES, to - offset))
            if not block or not is_plain(block):
                break
            run.add(block)
            offset += len(block)
        emulation.feed(run.text(), offset - start)

    def _skip_gap(self, emulation: ScreenEmulation) -> bool:
        """Continue at the oldest byte that is kept, if the next one is not; return False if there is none."""
        if self._source.start <= emulation.position.offset:
            return False
        start, size = self._source.start, (emulation.terminal.cols, emulation.terminal.rows)
        for offset, cols, rows in self._source.window_sizes(emulation.position.offset):
            if offset >= start:
                break
            size = (cols, rows)
        emulation.skip_to(start, *size, self._answered)
        return True

    def _save(self, emulation: ScreenEmulation) -> bool:
        """Save the screen; return False if that is not possible now."""
        # A full disk or an endless sequence prevents the save; the older saved screen is used then.
        with suppress(GhosttyError, OSError):
            self._saved.write(emulation.position, emulation.terminal.encode())
            self._saved_at = emulation.position.offset
            return True
        return False
