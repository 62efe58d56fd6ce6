"""Hearing what a program says: little that asks nothing at once, the rest by somebody who is woken for it."""

import asyncio

from ..keeper.spool import SpoolGone
from ..log.recording import Recording
from .screen import LOOK_BACK, may_ask

PIECE = 2 << 20
FLOOD = 4096  # bytes at once that are more than somebody's echo: with sequences in them they take a while


class QueryScanner:
    """Hears every byte of a recording once. `news` is set while there is more to it than to pass it by."""

    def __init__(self, recording: Recording, seen: int, news: asyncio.Event) -> None:
        self.seen = seen
        self._recording = recording
        self._news = news
        self._tail = b""

    def glance(self) -> None:
        """Called at every growth: nobody is woken for what asks nothing."""
        if not (self._news.is_set() or self._passes_by()):
            self._news.set()

    def next(self, most: int = PIECE) -> bytes:
        """What has not been heard; what is no longer kept is passed over.

        An ESC at its end waits for what follows: alone it looks like a question, and a coloured flood is cut
        behind one all the time.
        """
        try:
            piece = self._recording.read(self.seen, most)
        except SpoolGone:
            start = self._recording.start
            if start <= self.seen:
                return b""  # all of it is gone
            self.seen, self._tail = start, b""
            return self.next(most)
        return piece.removesuffix(b"\x1b")

    def _passes_by(self) -> bool:
        try:
            piece = self.next()
        except OSError:  # no descriptor is free, say: whoever is woken will hear of it
            return False
        if len(piece) >= PIECE - 1 or (len(piece) > FLOOD and b"\x1b" in piece) or may_ask(self._tail, piece):
            return False
        self._remember(piece)
        return True

    def take(self, piece: bytes) -> bool:
        """It has been heard; whether it may ask something."""
        asks = bool(piece) and may_ask(self._tail, piece)
        self._remember(piece)
        return asks

    def _remember(self, piece: bytes) -> None:
        self.seen += len(piece)
        self._tail = (self._tail + piece[-LOOK_BACK:])[-LOOK_BACK:]
